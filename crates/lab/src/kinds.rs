//! The kinds of state that `aerostat inspect` shows. A node with such a name gets a warning.

use crate::diag::{Diagnostics, Span, nearest};
use aerostat_node::inspect::StateKind;

fn is_kind(name: &str) -> bool {
    StateKind::named().any(|kind| kind.name() == name)
}

/// Warns of nodes that have the name of a kind of state.
pub(crate) fn warn<'a>(names: impl Iterator<Item = (&'a str, Span)>, d: &mut Diagnostics) {
    for (name, at) in names.filter(|(name, _)| is_kind(name)) {
        d.warning(
            at,
            format!(
                "'{name}' is also a kind of state: 'aerostat inspect {name}' shows that state, not this node"
            ),
        )
        .hint("give the node another name");
    }
}

/// The kind of state that somebody may have meant by a word that is nearly its name.
#[must_use]
pub fn meant(word: &str) -> Option<&'static str> {
    let names: Vec<&str> = StateKind::named().map(StateKind::name).collect();
    nearest(word, &names)
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::SMALL;

    #[test]
    fn a_node_that_inspect_would_take_for_a_kind_of_state_is_a_warning() {
        let text = SMALL.replace("  x: {", "  vc: {").replace("r: {", "mps: {");
        let text = text.replace("ip: 10.2.0.10", "ip: 10.2.0.10, bridge: { arp: 10.2.0.20 }");
        let warnings = crate::parse("t.atm.yml", &text, &[])
            .expect("a lab")
            .warnings;
        let told: Vec<_> = warnings.iter().map(|found| &found.message).collect();
        assert_eq!(told.len(), 3, "{warnings}");
        for name in ["vc", "mps", "arp"] {
            let begins = format!("'{name}' is also a kind of state: 'aerostat inspect {name}'");
            assert!(
                told.iter().any(|text| text.starts_with(&begins)),
                "{warnings}"
            );
        }
        assert!(
            crate::parse("t.atm.yml", SMALL, &[])
                .expect("a lab")
                .warnings
                .iter()
                .next()
                .is_none()
        );
    }
}
