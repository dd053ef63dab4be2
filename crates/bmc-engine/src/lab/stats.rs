//! Numbers for counts of failures: intervals, detection power, exact tests.
//!
//! Sources: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927) for the interval;
//! R. A. Fisher's exact test for two proportions; the rest is the binomial distribution.

/// 97.5 % quantile of the normal distribution.
const Z95: f64 = 1.959_963_984_540_054;

/// Beyond this no number of runs is an answer: at one second each it is more than thirty years.
const MOST_RUNS: f64 = 1e9;

/// Wilson score interval (95 %) for `k` failures in `n` runs, as fractions. `None` for `n` = 0.
pub fn wilson95(k: u32, n: u32) -> Option<(f64, f64)> {
    if n == 0 || k > n {
        return None;
    }
    let (k_f, n_f) = (f64::from(k), f64::from(n));
    let p = k_f / n_f;
    let z2 = Z95 * Z95;
    let centre = p + z2 / (2.0 * n_f);
    let spread = Z95 * (p * (1.0 - p) / n_f + z2 / (4.0 * n_f * n_f)).sqrt();
    let scale = 1.0 + z2 / n_f;
    let low = if k == 0 {
        0.0
    } else {
        ((centre - spread) / scale).max(0.0)
    };
    let high = if k == n {
        1.0
    } else {
        ((centre + spread) / scale).min(1.0)
    };
    Some((low, high))
}

/// One-sided 95 % upper bound of the failure rate after `n` runs without a failure (exact binomial). 1 for `n` = 0.
pub fn at_most95(n: u32) -> f64 {
    if n == 0 {
        1.0
    } else {
        1.0 - 0.05_f64.powf(1.0 / f64::from(n))
    }
}

/// Probability of at least one failure in `n` independent runs at a true failure rate.
pub fn caught_with(rate: f64, n: u32) -> f64 {
    1.0 - (1.0 - rate.clamp(0.0, 1.0)).powi(n.min(i32::MAX as u32) as i32)
}

/// Least number of runs in which a failure of that rate shows with that confidence. `None` where no number does.
pub fn runs_needed(rate: f64, confidence: f64) -> Option<u32> {
    if !(rate > 0.0 && rate <= 1.0 && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    if rate >= 1.0 {
        return Some(1);
    }
    let n = ((1.0 - confidence).ln() / (1.0 - rate).ln()).ceil();
    if !(n.is_finite() && n <= MOST_RUNS) {
        return None;
    }
    let mut n = (n as u32).max(1);
    // The logarithms can be off by one at an exact boundary.
    while n > 1 && caught_with(rate, n - 1) >= confidence {
        n -= 1;
    }
    while caught_with(rate, n) < confidence {
        n += 1;
    }
    Some(n)
}

/// One-sided Fisher exact test: probability of at most `k2` failures in the second group, given the margins, if both groups had one rate.
pub fn fisher_less(k1: u32, n1: u32, k2: u32, n2: u32) -> f64 {
    let (n1, n2) = (u64::from(n1), u64::from(n2));
    let (k1, k2) = (u64::from(k1).min(n1), u64::from(k2).min(n2));
    let failures = k1 + k2;
    let total = ln_choose(n1 + n2, failures);
    let least = failures.saturating_sub(n1);
    let mut p = 0.0;
    for j in least..=k2 {
        p += (ln_choose(n2, j) + ln_choose(n1, failures - j) - total).exp();
    }
    p.min(1.0)
}

/// Least number of clean runs after which `k` failures in `n` earlier runs would differ from none with one-sided p < 0.05. `None` for `k` = 0.
pub fn clean_runs_needed(k: u32, n: u32) -> Option<u32> {
    if k == 0 || k > n {
        return None;
    }
    let significant = |m: u32| fisher_less(k, n, 0, m) < 0.05;
    let mut high = 1;
    while !significant(high) {
        high = high.checked_mul(2)?;
        if high > 100_000_000 {
            return None;
        }
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if significant(middle) {
            high = middle
        } else {
            low = middle
        }
    }
    Some(high)
}

fn ln_choose(n: u64, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// ln(n!) exactly summed for small n, by Stirling's series above (error below 1e-12 from n = 256 on).
fn ln_factorial(n: u64) -> f64 {
    if n < 256 {
        return (2..=n).map(|i| (i as f64).ln()).sum();
    }
    let x = n as f64;
    x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x * x * x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn percent(pair: Option<(f64, f64)>) -> (f64, f64) {
        let (low, high) = pair.unwrap();
        (
            (low * 1000.0).round() / 10.0,
            (high * 1000.0).round() / 10.0,
        )
    }

    #[test]
    fn intervals_match_published_values() {
        assert_eq!(percent(wilson95(20, 20)), (83.9, 100.0));
        assert_eq!(percent(wilson95(6, 20)), (14.5, 51.9));
        assert_eq!(percent(wilson95(2, 20)), (2.8, 30.1));
        assert_eq!(percent(wilson95(301, 1000)), (27.3, 33.0));
        assert_eq!(percent(wilson95(37, 1000)), (2.7, 5.1));
        assert_eq!(wilson95(0, 0), None);
    }

    #[test]
    fn bounds_and_power_match_the_binomial() {
        assert!((at_most95(20) - 0.139).abs() < 5e-4);
        assert!((caught_with(0.10, 20) - 0.878).abs() < 5e-4);
        assert!((caught_with(0.05, 20) - 0.642).abs() < 5e-4);
        assert!((caught_with(0.01, 20) - 0.182).abs() < 5e-4);
        assert_eq!(runs_needed(0.05, 0.95), Some(59));
        assert_eq!(runs_needed(0.5, 0.75), Some(2));
        assert_eq!(runs_needed(0.0, 0.95), None);
        assert_eq!(runs_needed(1e-9, 0.95), None, "and at once");
        assert_eq!(runs_needed(1e-8, 0.5), Some(69_314_718));
    }

    #[test]
    fn clean_runs_match_the_exact_test() {
        assert_eq!(clean_runs_needed(2, 20), Some(68));
        assert_eq!(clean_runs_needed(37, 1000), Some(83));
        assert!((fisher_less(2, 20, 0, 68) - 0.0496).abs() < 1e-4);
        assert_eq!(clean_runs_needed(0, 20), None);
    }

    proptest! {
        #[test]
        fn the_interval_contains_the_rate(n in 1u32..5000, share in 0.0f64..=1.0) {
            let k = (f64::from(n) * share) as u32;
            let (low, high) = wilson95(k, n).unwrap();
            let rate = f64::from(k) / f64::from(n);
            prop_assert!(0.0 <= low && low <= rate + 1e-12 && rate <= high + 1e-12 && high <= 1.0);
        }

        #[test]
        fn runs_needed_is_the_least_number(rate in 0.001f64..0.999, confidence in 0.01f64..0.999) {
            let n = runs_needed(rate, confidence).unwrap();
            prop_assert!(caught_with(rate, n) >= confidence);
            prop_assert!(n == 1 || caught_with(rate, n - 1) < confidence);
        }

        #[test]
        fn clean_runs_needed_is_the_least_number(n in 1u32..200, share in 0.01f64..=1.0) {
            let k = ((f64::from(n) * share) as u32).max(1);
            let m = clean_runs_needed(k, n).unwrap();
            prop_assert!(fisher_less(k, n, 0, m) < 0.05);
            prop_assert!(m == 1 || fisher_less(k, n, 0, m - 1) >= 0.05);
        }
    }
}
