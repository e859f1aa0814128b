//! `--lab NAME` may also come before the verb: `aerostat --lab campus inspect vc`.

use crate::args::Cli;
use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _};
use std::ffi::{OsStr, OsString};

/// The arguments, with a `--lab` in front of the last verb moved behind it, where its subcommand expects it. Help needs
/// no lab: if a verb that has none is asked for help, the option is left out.
pub(crate) fn lab_behind_the_verb(typed: Vec<OsString>) -> Vec<OsString> {
    let mut words = typed.into_iter();
    let mut moved: Vec<OsString> = words.next().into_iter().collect();
    let mut lab = Vec::new();
    let mut verb = Cli::command();
    let mut rest = words.as_slice();
    loop {
        rest = match rest {
            [option, name, rest @ ..] if option == "--lab" => {
                lab.extend([option.clone(), name.clone()]);
                rest
            }
            [option, rest @ ..] if option.as_encoded_bytes().starts_with(b"--lab=") => {
                lab.push(option.clone());
                rest
            }
            [word, rest @ ..] => match called(&verb, word) {
                Some(found) => {
                    verb = found;
                    moved.push(word.clone());
                    rest
                }
                None => break,
            },
            [] => break,
        };
    }
    let takes_it = verb
        .get_arguments()
        .any(|known| known.get_long() == Some("lab"));
    if takes_it || !asks_for_help(rest) {
        moved.extend(lab);
    }
    moved.extend_from_slice(rest);
    moved
}

/// The error with the usage of its verb as the help shows it. That of `clap` has the options that were typed as if they
/// had to be there.
pub(crate) fn with_whole_usage(mut error: clap::Error, typed: &[OsString]) -> clap::Error {
    if error.get(ContextKind::Usage).is_some() {
        let mut verb = Cli::command();
        verb.build();
        let mut words = typed.iter().skip(1);
        while let Some(next) = words.next().and_then(|word| called(&verb, word)) {
            verb = next;
        }
        error.insert(
            ContextKind::Usage,
            ContextValue::StyledStr(verb.render_usage()),
        );
    }
    error
}

/// True if the words after a verb are for its help: a verb with further verbs shows it without any word, too.
fn asks_for_help(words: &[OsString]) -> bool {
    const HELP: [&str; 4] = ["help", "-h", "--help", "--version"];
    words.is_empty()
        || words
            .iter()
            .any(|word| HELP.iter().any(|help| word == help))
}

fn called(verb: &Command, word: &OsStr) -> Option<Command> {
    verb.find_subcommand(word).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn moved(typed: &str) -> String {
        let words = typed.split(' ').map(OsString::from).collect();
        let words = lab_behind_the_verb(words);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn a_lab_before_the_verb_goes_behind_it_and_nothing_else_moves() {
        for (typed, expected) in [
            ("a --lab x inspect urku vc", "a inspect --lab x urku vc"),
            ("a --lab=x inspect vc", "a inspect --lab=x vc"),
            ("a inspect --lab x vc", "a inspect --lab x vc"),
            ("a fault --lab x crash urku", "a fault crash --lab x urku"),
            ("a --lab x fault crash urku", "a fault crash --lab x urku"),
            ("a exec urku ip --lab x", "a exec urku ip --lab x"),
            ("a --lab x exec urku down", "a exec --lab x urku down"),
            ("a --lab", "a --lab"),
            ("a", "a"),
            ("a --lab x", "a"),
            ("a --lab x --help", "a --help"),
            ("a --lab x help pvc", "a help pvc"),
            (
                "a --lab x exec urku ls --help",
                "a exec --lab x urku ls --help",
            ),
            ("a --lab x run f.atm.yml", "a run --lab x f.atm.yml"),
            ("a --version", "a --version"),
        ] {
            assert_eq!(moved(typed), expected);
        }
    }

    #[test]
    fn the_usage_after_an_error_is_that_of_the_help() {
        let usage = "Usage: aerostat exec [OPTIONS] <NODE> <COMMAND>...\n";
        for typed in ["exec --lab x", "exec"] {
            let typed = format!("aerostat {typed}");
            let typed: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let error = Cli::command()
                .try_get_matches_from(&typed)
                .expect_err("no node");
            let text = with_whole_usage(error, &typed).to_string();
            assert!(text.contains(usage), "{text}");
        }
    }

    /// Every verb, at each depth, shows its help with `--lab` in front.
    #[test]
    fn a_lab_before_a_verb_does_not_hide_its_help() {
        fn check(verb: &Command, words: &[&str]) {
            let mut typed: Vec<OsString> = ["aerostat", "--lab", "x"].map(OsString::from).into();
            typed.extend(words.iter().map(OsString::from));
            typed.push("--help".into());
            let parsed = Cli::command().try_get_matches_from(lab_behind_the_verb(typed));
            let kind = parsed.expect_err("help is no command").kind();
            assert_eq!(kind, ErrorKind::DisplayHelp, "{words:?}");
            for next in verb.get_subcommands() {
                check(next, &[words, &[next.get_name()]].concat());
            }
        }
        check(&Cli::command(), &[]);
    }
}
