//! What people cannot be expected to know: which package holds a module, which plugin owns an option or a fixture, what Python removed.
//!
//! Tables only. An entry must be certain: a wrong package name would make somebody install a stranger's code.

/// Modules whose package has another name on PyPI. Dotted names come before the shorter ones they start with.
const PACKAGES: &[(&str, &str)] = &[
    ("google.cloud.storage", "google-cloud-storage"),
    ("google.cloud.bigquery", "google-cloud-bigquery"),
    ("google.protobuf", "protobuf"),
    ("google.auth", "google-auth"),
    ("ruamel.yaml", "ruamel.yaml"),
    ("zope.interface", "zope.interface"),
    ("Crypto", "pycryptodome"),
    ("Cryptodome", "pycryptodomex"),
    ("Levenshtein", "Levenshtein"),
    ("MySQLdb", "mysqlclient"),
    ("OpenSSL", "pyOpenSSL"),
    ("PIL", "Pillow"),
    ("PyQt5", "PyQt5"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("bson", "pymongo"),
    ("cairo", "pycairo"),
    ("cv2", "opencv-python"),
    ("corsheaders", "django-cors-headers"),
    ("crispy_forms", "django-crispy-forms"),
    ("dateutil", "python-dateutil"),
    ("debug_toolbar", "django-debug-toolbar"),
    ("decouple", "python-decouple"),
    ("discord", "discord.py"),
    ("django_filters", "django-filter"),
    ("dns", "dnspython"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("environ", "django-environ"),
    ("faiss", "faiss-cpu"),
    ("fitz", "PyMuPDF"),
    ("flask_cors", "Flask-Cors"),
    ("flask_login", "Flask-Login"),
    ("flask_migrate", "Flask-Migrate"),
    ("flask_sqlalchemy", "Flask-SQLAlchemy"),
    ("freezegun", "freezegun"),
    ("git", "GitPython"),
    ("github", "PyGithub"),
    ("gi", "PyGObject"),
    ("grpc", "grpcio"),
    ("grpc_tools", "grpcio-tools"),
    ("ipywidgets", "ipywidgets"),
    ("jose", "python-jose"),
    ("jwt", "PyJWT"),
    ("ldap", "python-ldap"),
    ("magic", "python-magic"),
    ("markdown", "Markdown"),
    ("mock", "mock"),
    ("multipart", "python-multipart"),
    ("mpl_toolkits", "matplotlib"),
    ("nacl", "PyNaCl"),
    ("pkg_resources", "setuptools"),
    ("psycopg2", "psycopg2-binary"),
    ("pymysql", "PyMySQL"),
    ("pythoncom", "pywin32"),
    ("rest_framework", "djangorestframework"),
    ("serial", "pyserial"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("slugify", "python-slugify"),
    ("socks", "PySocks"),
    ("telegram", "python-telegram-bot"),
    ("umap", "umap-learn"),
    ("usb", "pyusb"),
    ("websocket", "websocket-client"),
    ("win32api", "pywin32"),
    ("wx", "wxPython"),
    ("xdist", "pytest-xdist"),
    ("yaml", "PyYAML"),
    ("zmq", "pyzmq"),
    ("pytest_asyncio", "pytest-asyncio"),
    ("pytest_mock", "pytest-mock"),
    ("pytest_django", "pytest-django"),
    ("pytest_cov", "pytest-cov"),
    ("pytest_httpx", "pytest-httpx"),
    ("pytest_lazyfixture", "pytest-lazy-fixture"),
];

/// Options of plugins: a prefix if it ends in `*`, else the whole option.
const OPTIONS: &[(&str, &str)] = &[
    ("--no-cov*", "pytest-cov"),
    ("--cov*", "pytest-cov"),
    ("--ds", "pytest-django"),
    ("--dc", "pytest-django"),
    ("--reuse-db", "pytest-django"),
    ("--create-db", "pytest-django"),
    ("--nomigrations", "pytest-django"),
    ("--no-migrations", "pytest-django"),
    ("--migrations", "pytest-django"),
    ("--fail-on-template-vars", "pytest-django"),
    ("--django-*", "pytest-django"),
    ("--reruns*", "pytest-rerunfailures"),
    ("--only-rerun", "pytest-rerunfailures"),
    ("--rerun-except", "pytest-rerunfailures"),
    ("-n", "pytest-xdist"),
    ("--numprocesses", "pytest-xdist"),
    ("--dist", "pytest-xdist"),
    ("--maxprocesses", "pytest-xdist"),
    ("--max-worker-restart", "pytest-xdist"),
    ("--looponfail", "pytest-xdist"),
    ("--forked", "pytest-forked"),
    ("--boxed", "pytest-forked"),
    ("--asyncio-*", "pytest-asyncio"),
    ("--timeout*", "pytest-timeout"),
    ("--session-timeout", "pytest-timeout"),
    ("--benchmark-*", "pytest-benchmark"),
    ("--randomly-*", "pytest-randomly"),
    ("--random-order*", "pytest-random-order"),
    ("--html", "pytest-html"),
    ("--self-contained-html", "pytest-html"),
    ("--alluredir", "allure-pytest"),
    ("--allure-*", "allure-pytest"),
    ("--snapshot-*", "syrupy"),
    ("--flake-finder", "pytest-flakefinder"),
    ("--flake-runs", "pytest-flakefinder"),
    ("--count", "pytest-repeat"),
    ("--repeat-scope", "pytest-repeat"),
    ("--mypy*", "pytest-mypy"),
    ("--ruff*", "pytest-ruff"),
    ("--flake8", "pytest-flake8"),
    ("--pep8", "pytest-pep8"),
    ("--pylint*", "pytest-pylint"),
    ("--black", "pytest-black"),
    ("--isort", "pytest-isort"),
    ("--nbval*", "nbval"),
    ("--bdd*", "pytest-bdd"),
    ("--gherkin-*", "pytest-bdd"),
    ("--driver*", "pytest-selenium"),
    ("--base-url", "pytest-base-url"),
    ("--headed", "pytest-playwright"),
    ("--browser*", "pytest-playwright"),
    ("--tracing", "pytest-playwright"),
    ("--record-mode", "pytest-recording"),
    ("--block-network", "pytest-recording"),
    ("--vcr-record*", "pytest-vcr"),
    ("--disable-socket", "pytest-socket"),
    ("--allow-hosts", "pytest-socket"),
    ("--allow-unix-socket", "pytest-socket"),
    ("--force-sugar", "pytest-sugar"),
    ("--json-report*", "pytest-json-report"),
    ("--hypothesis-*", "hypothesis"),
    ("--doctest-plus*", "pytest-doctestplus"),
    ("--doctest-rst", "pytest-doctestplus"),
    ("--arraydiff*", "pytest-arraydiff"),
    ("--mpl*", "pytest-mpl"),
    ("--remote-data*", "pytest-remotedata"),
    ("--open-files", "pytest-openfiles"),
    ("--testmon*", "pytest-testmon"),
    ("--splits", "pytest-split"),
    ("--memray", "pytest-memray"),
    ("--instafail", "pytest-instafail"),
    ("--dead-fixtures", "pytest-deadfixtures"),
    ("--envfile", "pytest-dotenv"),
    ("--order-*", "pytest-order"),
    ("--strict-order", "pytest-order"),
];

/// Settings of `pytest.ini` that belong to plugins need no table: pytest only warns about them. Fixtures do.
const FIXTURES: &[(&str, &str)] = &[
    ("admin_client", "pytest-django"),
    ("admin_user", "pytest-django"),
    ("aioresponses", "pytest-aioresponses"),
    ("aiohttp_client", "pytest-aiohttp"),
    ("async_client", "pytest-django"),
    ("benchmark", "pytest-benchmark"),
    ("betamax_session", "betamax"),
    ("celery_app", "pytest-celery"),
    ("celery_worker", "pytest-celery"),
    ("class_mocker", "pytest-mock"),
    ("client", "pytest-django (or pytest-flask)"),
    ("cov", "pytest-cov"),
    ("datadir", "pytest-datadir"),
    ("db", "pytest-django"),
    ("django_assert_num_queries", "pytest-django"),
    ("django_db_setup", "pytest-django"),
    ("django_user_model", "pytest-django"),
    ("event_loop", "pytest-asyncio"),
    ("faker", "Faker"),
    ("freezer", "pytest-freezer"),
    ("fs", "pyfakefs"),
    ("httpserver", "pytest-httpserver"),
    ("httpx_mock", "pytest-httpx"),
    ("live_server", "pytest-django (or pytest-flask)"),
    ("mailoutbox", "pytest-django"),
    ("mocker", "pytest-mock"),
    ("module_mocker", "pytest-mock"),
    ("nursery", "pytest-trio"),
    ("page", "pytest-playwright"),
    ("postgresql", "pytest-postgresql"),
    ("qtbot", "pytest-qt"),
    ("redisdb", "pytest-redis"),
    ("requests_mock", "requests-mock"),
    ("respx_mock", "respx"),
    ("responses", "pytest-responses"),
    ("rf", "pytest-django"),
    ("selenium", "pytest-selenium"),
    ("session_mocker", "pytest-mock"),
    ("settings", "pytest-django"),
    ("shared_datadir", "pytest-datadir"),
    ("snapshot", "syrupy"),
    ("socket_enabled", "pytest-socket"),
    ("subtests", "pytest-subtests"),
    (
        "testdir",
        "pytest (load it with pytest_plugins = \"pytester\")",
    ),
    (
        "pytester",
        "pytest (load it with pytest_plugins = \"pytester\")",
    ),
    ("time_machine", "time-machine"),
    ("transactional_db", "pytest-django"),
    ("unused_tcp_port", "pytest-asyncio"),
    ("vcr", "pytest-recording (or pytest-vcr)"),
    ("worker_id", "pytest-xdist"),
];

/// Modules of the standard library that are gone, and the minor version of Python 3 that removed them.
const GONE_MODULES: &[(&str, u32)] = &[
    ("formatter", 10),
    ("parser", 10),
    ("symbol", 10),
    ("asynchat", 12),
    ("asyncore", 12),
    ("distutils", 12),
    ("imp", 12),
    ("smtpd", 12),
    ("aifc", 13),
    ("audioop", 13),
    ("cgi", 13),
    ("cgitb", 13),
    ("chunk", 13),
    ("crypt", 13),
    ("imghdr", 13),
    ("lib2to3", 13),
    ("mailcap", 13),
    ("msilib", 13),
    ("nis", 13),
    ("nntplib", 13),
    ("ossaudiodev", 13),
    ("pipes", 13),
    ("sndhdr", 13),
    ("spwd", 13),
    ("sunau", 13),
    ("telnetlib", 13),
    ("uu", 13),
    ("xdrlib", 13),
];

/// Names that are gone from modules of the standard library.
const GONE_NAMES: &[(&str, &[&str], u32)] = &[
    ("time", &["clock"], 8),
    ("fractions", &["gcd"], 9),
    ("base64", &["encodestring", "decodestring"], 9),
    (
        "collections",
        &[
            "Mapping",
            "MutableMapping",
            "Sequence",
            "MutableSequence",
            "Set",
            "MutableSet",
            "Iterable",
            "Iterator",
            "Callable",
            "Hashable",
            "Sized",
            "Container",
            "Generator",
            "Awaitable",
            "Coroutine",
            "KeysView",
            "ValuesView",
            "ItemsView",
            "ByteString",
            "Reversible",
            "Collection",
        ],
        10,
    ),
    ("asyncio", &["coroutine"], 11),
    ("inspect", &["getargspec", "formatargspec"], 11),
    ("configparser", &["SafeConfigParser"], 12),
    ("pkgutil", &["ImpImporter", "ImpLoader"], 12),
    ("ssl", &["wrap_socket", "match_hostname"], 12),
    ("unittest", &["makeSuite", "findTestCases"], 13),
    ("ast", &["Str", "Num", "Bytes", "NameConstant"], 14),
];

/// Returns the package that holds a module, if it has another name than the module.
pub(super) fn package_of(module: &str) -> Option<&'static str> {
    let under = |name: &str| {
        module == name
            || module
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
    };
    PACKAGES
        .iter()
        .find(|(name, _)| under(name))
        .map(|(_, package)| *package)
}

/// Returns the plugin that owns an option such as `--cov=shop`.
pub(super) fn plugin_of_option(option: &str) -> Option<&'static str> {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    // `-n4` is `-n 4`.
    let name = if name.starts_with("-n") && name[2..].bytes().all(|b| b.is_ascii_digit()) {
        "-n"
    } else {
        name
    };
    let fits = |entry: &str| match entry.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.trim_end_matches('-')),
        None => name == entry,
    };
    OPTIONS
        .iter()
        .find(|(entry, _)| fits(entry))
        .map(|(_, plugin)| *plugin)
}

/// Returns the plugin that provides a fixture.
pub(super) fn plugin_of_fixture(fixture: &str) -> Option<&'static str> {
    FIXTURES
        .iter()
        .find(|(name, _)| *name == fixture)
        .map(|(_, plugin)| *plugin)
}

/// Returns the minor version of Python 3 that removed a module.
pub(super) fn module_gone_in(module: &str) -> Option<u32> {
    let top = module.split('.').next().unwrap_or(module);
    GONE_MODULES
        .iter()
        .find(|(name, _)| *name == top)
        .map(|(_, minor)| *minor)
}

/// Returns the minor version of Python 3 that removed a name from a module.
pub(super) fn name_gone_in(module: &str, name: &str) -> Option<u32> {
    GONE_NAMES
        .iter()
        .find(|(from, names, _)| *from == module && names.contains(&name))
        .map(|(_, _, minor)| *minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_modules_lead_to_their_packages() {
        let table = [
            ("cv2", "opencv-python"),
            ("yaml", "PyYAML"),
            ("PIL.Image", "Pillow"),
            ("sklearn.linear_model", "scikit-learn"),
            ("dotenv", "python-dotenv"),
            ("bs4", "beautifulsoup4"),
            ("google.protobuf.message", "protobuf"),
        ];
        for (module, package) in table {
            assert_eq!(package_of(module), Some(package), "{module}");
        }
        for module in ["requests", "google", "yamlish", ""] {
            assert_eq!(package_of(module), None, "{module}");
        }
    }

    #[test]
    fn options_lead_to_their_plugins() {
        let table = [
            ("--cov=shop", "pytest-cov"),
            ("--cov-report=term-missing", "pytest-cov"),
            ("--no-cov", "pytest-cov"),
            ("-n", "pytest-xdist"),
            ("-n4", "pytest-xdist"),
            ("--reruns", "pytest-rerunfailures"),
            ("--ds=shop.settings", "pytest-django"),
            ("--asyncio-mode=auto", "pytest-asyncio"),
            ("--snapshot-update", "syrupy"),
        ];
        for (option, plugin) in table {
            assert_eq!(plugin_of_option(option), Some(plugin), "{option}");
        }
        for option in ["--absent", "-nx", "", "-", "--dsx", "é"] {
            assert_eq!(plugin_of_option(option), None, "{option}");
        }
    }

    #[test]
    fn what_python_removed_is_known() {
        assert_eq!(
            (module_gone_in("distutils.core"), module_gone_in("imp")),
            (Some(12), Some(12))
        );
        assert_eq!(module_gone_in("important"), None);
        assert_eq!(name_gone_in("collections", "Mapping"), Some(10));
        assert_eq!(name_gone_in("collections", "OrderedDict"), None);
    }

    #[test]
    fn no_entry_is_there_twice() {
        for table in [PACKAGES, OPTIONS, FIXTURES] {
            let mut names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }
}
