use super::*;
use clap::CommandFactory as _;

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

/// The short and the long help of each command, with its name, as a terminal shows it.
fn helps() -> Vec<(String, [String; 2])> {
    fn add(name: String, command: &mut clap::Command, all: &mut Vec<(String, [String; 2])>) {
        let short = command.render_help().to_string();
        let long = command.render_long_help().to_string();
        all.push((name.clone(), [short, long]));
        let subs = command.get_subcommands_mut();
        for sub in subs.filter(|sub| sub.get_name() != "help") {
            add(format!("{name} {}", sub.get_name()), sub, all);
        }
    }
    let (mut root, mut all) = (Cli::command(), Vec::new());
    root.build();
    add("aerostat".to_owned(), &mut root, &mut all);
    assert!(all.len() >= 36, "{} helps", all.len());
    all
}

#[test]
fn help_fits_80_columns_in_ascii() {
    for (name, [short, long]) in helps() {
        for line in short.lines().chain(long.lines()) {
            let width = line.chars().count();
            assert!(width <= 80, "{name}: {width} columns: {line}");
            assert!(line.is_ascii(), "{name}: {line}");
        }
    }
}

/// Texts for 80 columns must not be wrapped once more: that would break tables and examples.
#[test]
fn texts_behind_the_options_are_shown_as_they_are_written() {
    fn check(command: &clap::Command) {
        let text = command.get_after_help().map(ToString::to_string);
        for line in text.iter().flat_map(|text| text.lines()) {
            let name = command.get_name();
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

/// Every example in every help text is a valid command, and every subcommand has an example.
#[test]
fn examples_parse() {
    for (name, [_, help]) in helps() {
        // An example of several lines, as a shell takes it.
        let help = help.replace("\\\n", " ");
        let examples: Vec<&str> = help
            .lines()
            .skip_while(|line| *line != "Examples:")
            .filter_map(|line| line.trim().strip_prefix("aerostat "))
            .collect();
        assert!(!examples.is_empty(), "{name} has no examples");
        for example in examples {
            let words = example.split(" | ").next().unwrap_or(example);
            let words = words.split(" > ").next().unwrap_or(words);
            let words = words.split(" < ").next().unwrap_or(words);
            let words = words.strip_suffix(" &").unwrap_or(words);
            let argv = std::iter::once("aerostat").chain(words.split_whitespace());
            if let Err(error) = Cli::try_parse_from(argv) {
                panic!("{name}: example '{example}': {error}");
            }
        }
    }
}
