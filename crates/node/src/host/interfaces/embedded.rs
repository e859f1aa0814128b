//! Programs of embedded hosts, as seen from outside.

use crate::host::{Host, Ip};
use crate::ip::apps::{AppId, AppResult};
use crate::ip::stack::Stack;

impl Host {
    /// The stack of the embedded host itself, or of a host on the segment behind it, by number; `None` if there is no
    /// such host.
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

    /// The result of a program so far, and whether it has ended; `None` if there is no such program. `behind` is the
    /// number of a host on the segment behind this host.
    #[must_use]
    pub fn program(&self, behind: Option<usize>, app: AppId) -> Option<(AppResult, bool)> {
        let stack = self.stack(behind)?;
        Some((stack.report(app)?, stack.is_over(app)?))
    }

    /// True if programs can run on this embedded host, or on the given host on the segment behind it.
    #[must_use]
    pub fn runs_programs(&self, behind: Option<usize>) -> bool {
        self.stack(behind).is_some()
    }
}
