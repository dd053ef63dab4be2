//! Lists the files of the Python package, so that a new module cannot be forgotten when it is embedded.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("python/breakmycode_plugin");
    let out =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("package_files.rs");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    let mut text = String::from("&[\n");
    for file in files {
        let name = file
            .strip_prefix(&root)
            .expect("found below it")
            .to_str()
            .expect("module names are ASCII")
            .to_owned();
        text.push_str(&format!(
            "    ({name:?}, include_bytes!({:?})),\n",
            file.to_str().expect("the checkout has a UTF-8 path")
        ));
        println!("cargo::rerun-if-changed={}", file.display());
    }
    text.push_str("]\n");
    fs::write(out, text).expect("OUT_DIR is writable");
    println!("cargo::rerun-if-changed={}", root.display());
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|n| n != "__pycache__") {
                walk(&path, files);
            }
        } else if path.extension().is_some_and(|e| e == "py")
            || path.file_name().is_some_and(|n| n == "py.typed")
        {
            files.push(path);
        }
    }
}
