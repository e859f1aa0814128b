//! Versions of the UNI and the differences between them on the wire.

use super::bearer::{Bearer, CauseIe, QosClass};
use super::ie::{self, Aal, Ie};
use super::table::{self, MessageType, id};
use super::{Action, Element, Instruction};

crate::named! {
    /// Version of an interface. It is configured at both ends; there is no negotiation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Version {
        /// ATM Forum UNI 3.0 (draft SSCOP, AAL mode field, own causes).
        Uni30 = "3.0",
        /// ATM Forum UNI 3.1.
        Uni31 = "3.1",
        /// ATM Forum UNI Signalling 4.0.
        Uni40 = "4.0",
    }
}

/// Causes that have another number in UNI 3.0: (3.1 and later, 3.0).
const CAUSES_30: [(u8, u8); 4] = [(16, 31), (36, 41), (37, 51), (78, 93)];

impl Version {
    /// The number that this version uses for a cause of UNI 3.1 and later.
    #[must_use]
    pub fn cause_out(self, value: u8) -> u8 {
        let mapped = CAUSES_30.iter().find(|(new, _)| *new == value);
        match mapped {
            Some((_, old)) if self == Self::Uni30 => *old,
            _ => value,
        }
    }
    /// The number of UNI 3.1 and later for a cause that came over an interface of this version.
    #[must_use]
    pub fn cause_in(self, value: u8) -> u8 {
        // 41 is also a cause of its own in UNI 3.0, so it stays.
        let mapped = CAUSES_30
            .iter()
            .find(|(_, old)| *old == value && value != 41);
        match mapped {
            Some((new, _)) if self == Self::Uni30 => *new,
            _ => value,
        }
    }
    /// A cause element with this version's number for the cause.
    #[must_use]
    pub fn cause(self, location: u8, value: u8) -> CauseIe {
        CauseIe::new(location, self.cause_out(value))
    }

    /// True if the version has this element in user-network messages.
    #[must_use]
    pub fn has_element(self, id: u8) -> bool {
        let only_40 = matches!(
            id,
            id::NOTIFICATION
                | id::TRANSIT_DELAY
                | id::CONNECTED_NUMBER
                | id::CONNECTED_SUBADDRESS
                | id::USER_USER
                | id::GENERIC_IDENTIFIER
                | id::MINIMUM_TRAFFIC
                | id::ALTERNATIVE_TRAFFIC
                | id::ABR_SETUP
                | id::ABR_ADDITIONAL
                | id::REPORT_TYPE
                | id::FACILITY
                | id::NARROWBAND_LLC
                | id::NARROWBAND_HLC
                | id::LIJ_CALL_ID
                | id::LIJ_PARAMETERS
                | id::LEAF_SEQUENCE
                | id::CONNECTION_SCOPE
                | id::EXTENDED_QOS
                | id::MINIMUM_CELL_RATE
        );
        // Versions before 4.0 do not carry elements that are not defined.
        self == Self::Uni40 || !(only_40 || table::definition(id).is_none())
    }
    /// The strictest action requested for elements with the pass-along request that this version cannot carry, and the
    /// identifier of the element that requests it. An element without an explicit action counts as a request for a
    /// report, like any element that is not understood.
    #[must_use]
    pub fn obstacle(self, elements: &[Element]) -> Option<(Action, u8)> {
        const STRICTEST_FIRST: [Action; 5] = [
            Action::ClearCall,
            Action::DiscardMessageReport,
            Action::DiscardMessage,
            Action::DiscardElementReport,
            Action::DiscardElement,
        ];
        let passing = elements.iter().filter(|e| {
            table::definition(e.id).is_none()
                && e.instruction.pass_along()
                && !self.has_element(e.id)
        });
        let wish = |e: &Element| {
            let action = e.instruction.action();
            action.unwrap_or(Action::DiscardElementReport)
        };
        let wishes: Vec<_> = passing.map(|e| (wish(e), e.id)).collect();
        STRICTEST_FIRST
            .iter()
            .find_map(|action| wishes.iter().find(|(wish, _)| wish == action).copied())
    }
    /// True if the version has this message.
    #[must_use]
    pub fn has_message(self, kind: MessageType) -> bool {
        let only_40 = matches!(
            kind,
            MessageType::ALERTING
                | MessageType::PROGRESS
                | MessageType::NOTIFY
                | MessageType::PARTY_ALERTING
                | MessageType::LEAF_SETUP_FAILURE
                | MessageType::LEAF_SETUP_REQUEST
                | MessageType::MODIFY_REQUEST
                | MessageType::MODIFY_ACK
                | MessageType::MODIFY_REJECT
                | MessageType::CONNECTION_AVAILABLE
        );
        kind.definition().is_some() && (self == Self::Uni40 || !only_40)
    }

    /// An element from an interface of any version in the form that this version sends; `None` if this version does not
    /// have the element.
    ///
    /// Only the AAL mode, the QoS coding, octet 5a of the bearer and the causes of UNI 3.0 are changed.
    #[must_use]
    pub fn adapt(self, element: &Element) -> Option<Element> {
        if !self.has_element(element.id) {
            return None;
        }
        // The others are the same in all versions.
        let may_change = [
            id::AAL_PARAMETERS,
            id::QOS_PARAMETER,
            id::BEARER_CAPABILITY,
            id::CAUSE,
        ];
        if !may_change.contains(&element.id) {
            return Some(element.clone());
        }
        let changed = match ie::decode(element) {
            Ok(Ie::Aal(Aal::Aal5(fields))) => self.adapt_aal5(fields),
            Ok(Ie::Qos(class)) => self.adapt_qos(class),
            Ok(Ie::Bearer(bearer)) => self.adapt_bearer(bearer),
            Ok(Ie::Cause(cause)) if self.cause_out(cause.value) != cause.value => {
                let value = self.cause_out(cause.value);
                Some(Ie::Cause(CauseIe { value, ..cause }))
            }
            _ => None,
        };
        let Some(changed) = changed else {
            return Some(element.clone());
        };
        let mut new = changed.encode();
        // The coding may have changed; the action that the original sender requested stays.
        let action = element.instruction.0 & 0x1f;
        new.instruction = Instruction(new.instruction.0 & 0xe0 | action);
        Some(new)
    }

    fn adapt_aal5(self, mut fields: super::Fields) -> Option<Ie> {
        let wants_mode = self == Self::Uni30;
        if fields.has(0x83) == wants_mode || fields.is_empty() {
            return None;
        }
        if wants_mode {
            fields.insert_before(0x84, 0x83, 1);
        } else {
            fields.remove(0x83);
        }
        Some(Ie::Aal(Aal::Aal5(fields)))
    }
    fn adapt_qos(self, class: QosClass) -> Option<Ie> {
        let unspecified = class.forward == 0 && class.backward == 0;
        let forum = self == Self::Uni30 || !unspecified;
        (forum != class.forum).then_some(Ie::Qos(QosClass { forum, ..class }))
    }
    fn adapt_bearer(self, bearer: Bearer) -> Option<Ie> {
        let atc = match (self, bearer.atc) {
            (Self::Uni30, None) if bearer.class == Bearer::X => Some(0),
            // The values that UNI 3.x has instead of these three. All other values stay.
            (Self::Uni30 | Self::Uni31, Some(0x07)) => Some(0x05),
            (Self::Uni30 | Self::Uni31, Some(0x13)) => Some(0x09),
            (Self::Uni30 | Self::Uni31, Some(0x0b)) => Some(0x0a),
            (_, same) => same,
        };
        (atc != bearer.atc).then_some(Ie::Bearer(Bearer { atc, ..bearer }))
    }
}
