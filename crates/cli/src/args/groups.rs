//! The list of subcommands in `aerostat --help`: in groups, in the order of their use.

use super::Command as Verb;
use clap::builder::Styles;
use clap::{Command, Subcommand as _};
use std::fmt::Write as _;

/// Headings with their subcommands. Every subcommand that is not hidden is listed here.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "First steps",
        &[
            "run",
            "labs",
            "follow",
            "sweep",
            "rfc2544",
            "atptest",
            "reproduce",
            "up",
            "host",
            "down",
            "ls",
            "validate",
            "check",
            "verify",
            "graph",
            "overhead",
            "explain",
            "doctor",
        ],
    ),
    (
        "Look at a running lab",
        &[
            "view", "inspect", "trace", "events", "capture", "atmarp", "atmaddr", "atmdiag",
        ],
    ),
    (
        "Change a running lab",
        &["exec", "shell", "pvc", "qos", "link", "fault", "move"],
    ),
    (
        "Measure in a running lab",
        &["ping", "pingall", "iperf", "oam"],
    ),
    (
        "Serve other programs",
        &["mount", "metrics", "extcap", "completion", "man", "help"],
    ),
];

/// The help text of the root command, because clap has no groups of subcommands.
pub(super) fn template() -> String {
    let verbs = Verb::augment_subcommands(Command::new("aerostat"));
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "\n{header}{heading}:{header:#}");
        for name in names {
            let about = about(&verbs, name);
            let _ = writeln!(text, "  {literal}{name:<10}{literal:#}  {about}");
        }
    }
    let _ = write!(
        text,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    text
}

fn about(verbs: &Command, name: &str) -> String {
    match verbs.find_subcommand(name).and_then(Command::get_about) {
        Some(about) => about.to_string(),
        // clap adds this subcommand itself.
        None => "Print this message or the help of a subcommand".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use clap::CommandFactory as _;
    use std::collections::BTreeSet;

    fn help() -> String {
        Cli::command().render_help().to_string()
    }

    #[test]
    fn every_subcommand_stands_in_one_group_or_is_hidden() {
        let named: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let unique: BTreeSet<&str> = named.iter().copied().collect();
        assert_eq!(unique.len(), named.len(), "a subcommand stands twice");
        let mut root = Cli::command();
        root.build();
        let shown = root.get_subcommands().filter(|sub| !sub.is_hide_set());
        let shown: BTreeSet<&str> = shown.map(Command::get_name).collect();
        assert_eq!(unique, shown);
    }

    #[test]
    fn daemons_are_not_listed_but_can_be_called() {
        let help = help();
        for daemon in [
            "mpcd", "lecd", "lecs", "les", "bus", "sigd", "ilmid", "mpsd",
        ] {
            let listed = help
                .lines()
                .any(|line| line.trim_start().starts_with(&format!("{daemon} ")));
            assert!(!listed, "{daemon} is listed:\n{help}");
            let parsed = Cli::command().try_get_matches_from(["aerostat", daemon, "urku"]);
            assert!(parsed.is_ok(), "{daemon}");
        }
    }

    #[test]
    fn the_list_of_subcommands_is_grouped_and_fits_a_screen_of_80_columns() {
        let help = help();
        let headings: Vec<usize> = GROUPS
            .iter()
            .map(|(heading, _)| help.find(&format!("\n{heading}:\n")).expect(heading))
            .collect();
        assert!(headings.is_sorted(), "{help}");
        let end = help.find("\nOptions:\n").expect("options");
        for line in help[headings[0]..end].lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(help.contains("Exit codes:"), "{help}");
        assert!(!help.contains("{"), "{help}");
    }
}
