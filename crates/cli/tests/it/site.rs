//! `aerostat view --site`: the files of a site, and what it refuses. `tests/browser/site.test.mjs` opens sites.

use aerostat_testing::command::{Ran, command};
use std::fs;
use std::path::{Path, PathBuf};

/// An empty directory.
fn empty(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// `view --site site` with these words, in this directory, which gets a module of this version.
fn site(directory: &Path, version: &str, words: &[&str]) -> Ran {
    let module = format!("// aerostat-web {version}\nAEROSTAT_MODULE = \"\";\n");
    fs::write(directory.join("module.js"), module).unwrap();
    let args = ["view", "--site", "site", "--module", "module.js"];
    let output = command(&[&args[..], words].concat())
        .current_dir(directory)
        .output();
    output.expect("the command runs").into()
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn names(directory: &Path) -> Vec<String> {
    let files = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_site_without_names_has_all_labs_that_a_tab_can_run() {
    let here = empty("site-all");
    let ran = site(&here, VERSION, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let names = names(&here.join("site"));
    for file in [
        "index.html",
        "site.js",
        "site.css",
        "module.js",
        "campus.html",
        "papers-sara.html",
    ] {
        assert!(names.iter().any(|name| name == file), "{file}: {names:?}");
    }
    // Its node is this machine.
    assert!(
        !names.iter().any(|name| name.starts_with("host-")),
        "{names:?}"
    );
    ran.says("labs are left out");
    let index = fs::read_to_string(here.join("site/index.html")).unwrap();
    assert_eq!(index.matches("<dt>").count(), names.len() - 4);
    assert!(names.len() > 40, "{}", names.len());
}

#[test]
fn labs_with_mistakes_have_pages_and_names_are_told_apart() {
    let here = empty("site-given");
    fs::write(
        here.join("broken.atm.yml"),
        "switches: { s1: {} }\nhosts: [</textarea>\n",
    )
    .unwrap();
    let ran = site(&here, VERSION, &["broken", "two-hosts"]);
    ran.ends(0, "broken has mistakes, which its page shows");
    assert_eq!(names(&here.join("site")).len(), 6);
    let page = fs::read_to_string(here.join("site/broken.html")).unwrap();
    assert!(page.contains("hosts: [&lt;/textarea&gt;"), "{page}");
    for (words, said) in [
        (
            &["campus", "campus"][..],
            "campus: the site has a page campus.html already",
        ),
        (&["-"], "a site has no lab from standard input"),
        (&["nowhere"], "no lab of this name"),
    ] {
        let ran = site(&here, VERSION, words);
        ran.ends(2, said);
    }
}

#[test]
fn a_module_of_another_version_or_none_is_refused_before_anything_is_written() {
    let here = empty("site-module");
    let ran = site(&here, "0.0.1", &["campus"]);
    assert_eq!(ran.code, 1);
    let said = format!("this is aerostat-web 0.0.1, and the program needs aerostat-web {VERSION}");
    ran.says(&said);
    fs::write(here.join("other.js"), "alert(1)").unwrap();
    for (module, said) in [
        ("other.js", "this is no module as crates/web/build makes it"),
        ("missing.js", "No such file"),
        (".", "this is no regular file"),
    ] {
        let args = ["view", "--site", "site", "--module", module];
        let ran: Ran = command(&args).current_dir(&here).output().unwrap().into();
        ran.ends(1, said);
        ran.says("crates/web/build");
    }
    assert!(!here.join("site").exists());
    let both = ["view", "--site", "site", "--listen", "127.0.0.1:0"];
    let ran: Ran = command(&both).current_dir(&here).output().unwrap().into();
    assert_eq!(ran.code, 2, "{}", ran.err);
}

#[test]
fn a_site_does_not_follow_links_that_others_have_planted() {
    let here = empty("site-links");
    fs::create_dir(here.join("site")).unwrap();
    fs::write(here.join("victim"), "mine").unwrap();
    std::os::unix::fs::symlink("../victim", here.join("site/index.html")).unwrap();
    assert_eq!(site(&here, VERSION, &["two-hosts"]).code, 0);
    assert_eq!(fs::read_to_string(here.join("victim")).unwrap(), "mine");
}
