//! Why there is no result, in the cases that only the engine sees. The rest is named by `bmc_pytest::diagnose`.

use bmc_types::Advice;

pub(super) fn nothing_ran() -> Advice {
    Advice {
        code: "E029".to_owned(),
        headline: "no run could be completed".to_owned(),
        places: Vec::new(),
        why: vec!["every process ended before it had run the tests".to_owned()],
        help: vec!["breakmycode doctor".to_owned()],
    }
}

pub(super) fn none_of_only(only: &[String]) -> Advice {
    Advice {
        code: "E028".to_owned(),
        headline: "none of the tests named with --only is collected".to_owned(),
        places: only.iter().take(5).cloned().collect(),
        why: vec!["pytest collects other tests, but none with these node ids".to_owned()],
        help: vec!["python -m pytest --collect-only -q   to see the node ids there are".to_owned()],
    }
}

pub(super) fn trouble_advice(trouble: &str) -> Advice {
    Advice {
        code: "E029".to_owned(),
        headline: "pytest ended before it could run the tests".to_owned(),
        places: Vec::new(),
        why: vec![trouble.to_owned()],
        help: vec!["python -m pytest --collect-only   to see it without breakmycode".to_owned()],
    }
}

pub(super) fn launch_failure(error: &crate::runner::LaunchError) -> Advice {
    let mut why = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        why.push(error.to_string());
        cause = error.source();
    }
    Advice {
        code: "E050".to_owned(),
        headline: format!("cannot {error}"),
        places: Vec::new(),
        why,
        help: vec![
            "breakmycode doctor".to_owned(),
            "breakmycode . --copy   runs on copies of the project, without namespaces".to_owned(),
        ],
    }
}
