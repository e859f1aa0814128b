//! `--lab NAME` may also come before the verb: `aerostat --lab campus inspect vc`.

use crate::args::Cli;
use clap::{Command, CommandFactory as _};
use std::ffi::{OsStr, OsString};

/// The arguments, with a `--lab` in front of the last verb moved behind it, where its subcommand expects it.
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
    moved.extend(lab);
    moved.extend_from_slice(rest);
    moved
}

fn called(verb: &Command, word: &OsStr) -> Option<Command> {
    verb.find_subcommand(word).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("a --lab x", "a --lab x"),
            ("a --version", "a --version"),
        ] {
            assert_eq!(moved(typed), expected);
        }
    }
}
