//! Sentences of checks: `urku -> sello within 10s`.

use crate::units;
use aerostat_proto::Duration;

/// Words, and what follows certain words behind them.
pub(super) struct Sentence<'a> {
    /// The words before the first of the certain words.
    pub(super) head: String,
    parts: Vec<(&'static str, &'a str)>,
}

impl<'a> Sentence<'a> {
    /// Takes a text apart. `words` are those that may stand at its end, each with one word behind it.
    pub(super) fn of(text: &'a str, words: &[&'static str]) -> Result<Self, String> {
        let mut left: Vec<&str> = text.split_whitespace().collect();
        let mut parts: Vec<(&'static str, &str)> = Vec::new();
        while let [.., word, value] = left[..]
            && let Some(word) = words.iter().find(|known| **known == word)
        {
            if parts.iter().any(|(known, _)| known == word) {
                return Err(format!("'{word}' stands here twice"));
            }
            parts.push((word, value));
            left.truncate(left.len() - 2);
        }
        Ok(Self {
            head: left.join(" "),
            parts,
        })
    }

    /// The text behind a word.
    pub(super) fn get(&self, word: &str) -> Option<&'a str> {
        let mut parts = self.parts.iter();
        parts.find_map(|(known, value)| (*known == word).then_some(*value))
    }

    /// The time behind a word.
    pub(super) fn time(&self, word: &str) -> Result<Option<Duration>, String> {
        let time = self.get(word).map(units::duration).transpose();
        time.map_err(|why| format!("behind '{word}': {why}"))
    }

    /// The two names of the head, `urku -> sello`.
    pub(super) fn ends(&self, example: &str) -> Result<[String; 2], String> {
        let ends = self.head.split_once("->");
        let ends = ends.map(|(from, to)| [from.trim(), to.trim()]);
        match ends {
            Some(ends) if ends.iter().all(|end| !end.is_empty() && !end.contains(' ')) => {
                Ok(ends.map(str::to_owned))
            }
            _ => Err(format!("expected two names, such as {example}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_at_the_end_belong_to_the_sentence_and_others_to_its_head() {
        let words = ["from", "before"];
        let all = Sentence::of("Resolution Request from urku before 7s", &words).unwrap();
        assert_eq!(all.head, "Resolution Request");
        assert_eq!(all.get("from"), Some("urku"));
        assert_eq!(all.time("before"), Ok(Some(Duration::from_secs(7))));
        let plain = Sentence::of("from here", &[]).unwrap();
        assert_eq!(plain.head, "from here");
        assert!(Sentence::of("x from a from b", &words).is_err());
        assert!(
            Sentence::of("x before soon", &words)
                .unwrap()
                .time("before")
                .is_err()
        );
    }
}
