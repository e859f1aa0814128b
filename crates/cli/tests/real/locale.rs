//! A running lab in a locale without UTF-8: output for people has ASCII alone, output for programs is UTF-8.

use crate::lab_file;
use crate::live::Runtime;
use aerostat_testing::command::{BEYOND_ASCII, says_ascii};

#[test]
fn commands_of_a_running_lab_speak_ascii_in_the_c_locale() {
    let runtime = Runtime::new("locale");
    let lab = lab_file("locale-live.atm.yml", BEYOND_ASCII);
    let ran = |locale: &str, words: &[&str]| {
        let mut command = runtime.command(words);
        command.env("LC_ALL", locale).output().unwrap()
    };
    let commands: &[&[&str]] = &[
        &["up", "-d", "--embedded", &lab],
        &["ls", "--wide"],
        &["inspect", "--wide"],
        &["inspect", "urku", "lec", "-o", "proc"],
        &["trace", "--no-follow"],
        &["trace", "--story", "--no-follow", "--all"],
        &["graph"],
        &["pvc", "show"],
        &["pvc", "add", "s1", "0.0.100", "1.0.100", "--qos", "cbr:µ"],
        &["qos", "add", "urku", "10.1.0.20 tx=µ rx=tx"],
        &["fault", "link-down", "é"],
        &["atmarp", "-a"],
        &["atmaddr", "-n"],
        &["atmdiag"],
        &["ping", "-c", "1", "urku", "sello"],
        &["pingall", "-c", "1"],
        &["iperf", "-t", "1", "urku", "sello"],
        &["exec", "urku", "é"],
    ];
    for words in commands {
        says_ascii(runtime.command(words));
    }
    // The ladder has its signs where they can be shown.
    let ladder = String::from_utf8(ran("C.UTF-8", &["trace", "--no-follow"]).stdout).unwrap();
    assert!(ladder.contains("urku ──► s1"), "{ladder}");
    let ladder = String::from_utf8(ran("C", &["trace", "--no-follow"]).stdout).unwrap();
    assert!(ladder.contains("urku --> s1"), "{ladder}");
    // Programs get the same octets in every locale.
    for words in [
        &["graph", "-o", "svg"][..],
        &["trace", "--no-follow", "-o", "jsonl"],
    ] {
        let text = |locale| String::from_utf8(ran(locale, words).stdout).unwrap();
        // The lab goes on: the answers can be compared if nothing happened from the first to the last.
        let mut answers = (0..20).map(|_| (text("C"), text("C.UTF-8"), text("C")));
        let still = answers.find(|(before, _, after)| before == after);
        let (before, between, _) = still.expect("an instant without messages");
        assert_eq!(before, between, "{words:?}");
    }
    says_ascii(runtime.command(&["down"]));
    runtime.nothing_is_left();
}
