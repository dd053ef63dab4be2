//! Small projects that several tests scan: names and contents of their files.

/// A list of names and contents.
pub(crate) type Files = &'static [(&'static str, &'static str)];

/// Passes.
pub(crate) const CLEAN: Files = &[("test_a.py", "def test_a():\n    pass\n")];

/// One fails, one passes.
pub(crate) const FAILING: Files = &[(
    "test_a.py",
    "def test_a():\n    assert 1 == 2\n\ndef test_b():\n    pass\n",
)];

/// Passes and fails by the hash seed alone, which comes from the seed of the scan: with that of the tests, the third of four starts fails.
pub(crate) const FLAKY: Files = &[(
    "test_a.py",
    "import os\n\ndef test_a():\n    assert int(os.environ[\"PYTHONHASHSEED\"]) % 2 == 0\n",
)];

/// One fails, one is flaky, one passes.
pub(crate) const BOTH: Files = &[FAILING[0], ("test_b.py", FLAKY[0].1)];

/// One file cannot be collected.
pub(crate) const BROKEN: Files = &[
    ("test_a.py", "import module_that_is_nowhere\n"),
    ("test_b.py", CLEAN[0].1),
];

/// No test.
pub(crate) const EMPTY: Files = &[("setup.cfg", "[tool:pytest]\n")];

/// One fails, one is flaky, one passes, all in one file.
pub(crate) const MIXED: Files = &[(
    "test_a.py",
    "import os\n\n\
     def test_fails():\n    print('printed')\n    assert 1 == 2\n\n\
     def test_flaky():\n    assert int(os.environ['PYTHONHASHSEED']) % 2 == 0\n\n\
     def test_clean():\n    pass\n",
)];
