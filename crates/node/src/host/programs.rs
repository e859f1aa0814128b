//! Programs of embedded hosts, seen from outside.

use super::{Host, Ip};
use crate::ip::apps::{AppId, AppResult};
use crate::ip::stack::Stack;

impl Host {
    /// The embedded host, or one on the segment behind it, by number; `None` if there is no such host.
    fn stack(&self, behind: Option<usize>) -> Option<&Stack> {
        match (behind, &self.ip) {
            (None, Ip::Stack(stack)) => Some(stack),
            (Some(host), _) => {
                let segment = self.segment.as_ref()?;
                segment.hosts().get(host).map(|host| &*host.stack)
            }
            (None, _) => None,
        }
    }

    /// The result of a program so far, and whether it has ended; `None` if there is no such program. `behind`: of a host on the
    /// segment behind this one, by number.
    #[must_use]
    pub fn program(&self, behind: Option<usize>, app: AppId) -> Option<(AppResult, bool)> {
        let stack = self.stack(behind)?;
        Some((stack.report(app)?, stack.is_over(app)?))
    }

    /// Whether programs can run on this embedded host, or on one on the segment behind it, by number.
    #[must_use]
    pub fn runs_programs(&self, behind: Option<usize>) -> bool {
        self.stack(behind).is_some()
    }
}
