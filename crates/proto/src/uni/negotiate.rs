//! Offers with alternatives: the traffic descriptor, and what else the caller would accept.
//!
//! A SETUP may contain an alternative descriptor, or the minimum that the caller accepts. Each network on the way takes
//! the first offer that it can carry and forwards only that one; the CONNECT tells the caller which offer was taken.
//! Source: Q.2962 §9, UNI Signalling 4.0 §8 (from memory where the text was not available).

use aerostat_wire::q2931::{Bearer, Element, Fields, Ie, Version, convert, id, ie};
use aerostat_wire::{Qos, ServiceCategory, TrafficParams};

use super::SetupInfo;

/// Alternative that a caller accepts instead of its traffic descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// This descriptor.
    Alternative(Fields),
    /// Any descriptor with peak rates between these and the offered ones.
    Minimum(Fields),
}

/// The peak rate of a direction (0 forward, 1 backward): its field, and its value.
fn peak(fields: &Fields, back: u8) -> Option<(u8, u32)> {
    let either = [0x84 + back, 0x82 + back];
    let found = either.into_iter().find(|id| fields.has(*id))?;
    Some((found, fields.get(found)?))
}

impl SetupInfo {
    fn value(&self, wanted: u8) -> Option<Ie> {
        let element = self.elements.iter().find(|e| e.id == wanted)?;
        ie::decode(element).ok()
    }

    /// The traffic descriptor.
    #[must_use]
    pub fn traffic(&self) -> Fields {
        if let Some(Ie::Traffic(fields)) = self.value(id::TRAFFIC_DESCRIPTOR) {
            return fields;
        }
        match convert::elements(&self.qos, self.multipoint, Version::Uni40) {
            [_, Ie::Traffic(fields), ..] => fields,
            _ => Fields::new(),
        }
    }

    /// The caller's alternative, if it is valid: a descriptor that is complete for a connection of the same category,
    /// or peak rates not above the offer's. If both elements are present, the alternative descriptor counts. A
    /// point-to-multipoint call has no alternative.
    #[must_use]
    pub fn fallback(&self) -> Option<Fallback> {
        if self.multipoint {
            return None;
        }
        let ie = self.value(id::ALTERNATIVE_TRAFFIC);
        let ie = ie.or_else(|| self.value(id::MINIMUM_TRAFFIC));
        match ie? {
            Ie::AlternativeTraffic(fields) => {
                let other = self.qos_with(&fields);
                let same = |a: TrafficParams, b: TrafficParams| a.category == b.category;
                let fits = same(other.tx, self.qos.tx) && same(other.rx, self.qos.rx);
                let good = fits && convert::combination_allowed(&fields, false);
                good.then_some(Fallback::Alternative(fields))
            }
            Ie::MinimumTraffic(fields) => {
                let own = self.traffic();
                let below = |back| match (peak(&fields, back), peak(&own, back)) {
                    (Some((_, least)), Some((_, own))) => least <= own,
                    _ => false,
                };
                let good = below(0) && below(1);
                good.then_some(Fallback::Minimum(fields))
            }
            _ => None,
        }
    }

    /// The same offer without alternatives.
    #[must_use]
    pub fn settled(mut self) -> Self {
        let choices = [id::ALTERNATIVE_TRAFFIC, id::MINIMUM_TRAFFIC];
        self.elements.retain(|e| !choices.contains(&e.id));
        self
    }

    /// The same offer with another traffic descriptor.
    #[must_use]
    pub fn with_traffic(&self, traffic: &Fields) -> Self {
        let mut info = self.clone();
        info.qos = self.qos_with(traffic);
        replace(&mut info.elements, Ie::Traffic(traffic.clone()).encode());
        info
    }

    /// The same offer with these peak rates (forward, backward), but not below the caller's minimum. At that minimum no
    /// choice remains.
    #[must_use]
    pub fn scaled(&self, forward: u32, backward: u32) -> Self {
        let mut traffic = self.traffic();
        let Some(Fallback::Minimum(least)) = self.fallback() else {
            return self.clone();
        };
        let mut at_least = true;
        for (back, wanted) in [(0, forward), (1, backward)] {
            let scr = [0x90, 0x88]
                .into_iter()
                .find_map(|id| traffic.get(id + back));
            let least = peak(&least, back).map_or(0, |(_, rate)| rate);
            let floor = least.max(scr.unwrap_or(0));
            for id in [0x84 + back, 0x82 + back] {
                if let Some(own) = traffic.get(id) {
                    traffic.set(id, own.min(wanted.max(floor)));
                }
            }
            at_least &= peak(&traffic, back).is_some_and(|(_, rate)| rate <= floor);
        }
        let info = self.with_traffic(&traffic);
        if at_least { info.settled() } else { info }
    }

    /// True if a called side may answer this offer with the descriptor `traffic`.
    #[must_use]
    pub fn allows(&self, traffic: &Fields) -> bool {
        let wanted = self.qos_with(traffic);
        if wanted == self.qos {
            return true;
        }
        match self.fallback() {
            None => false,
            Some(Fallback::Alternative(fields)) => wanted == self.qos_with(&fields),
            Some(Fallback::Minimum(_)) => {
                let rate = |back| peak(traffic, back).map_or(0, |(_, rate)| rate);
                self.scaled(rate(0), rate(1)).qos == wanted
            }
        }
    }

    /// The offer's QoS with the least rates that the caller accepts as [`TrafficParams::min_pcr`], where the caller
    /// leaves a choice.
    #[must_use]
    pub fn qos_with_minimum(&self) -> Qos {
        let mut qos = self.qos;
        if let Some(Fallback::Minimum(least)) = self.fallback() {
            for (back, own) in [(0, &mut qos.tx), (1, &mut qos.rx)] {
                let least = peak(&least, back).map_or(0, |(_, rate)| rate);
                if own.category.is_some() && own.max_pcr.is_some_and(|most| least < most) {
                    own.min_pcr = least;
                }
            }
        }
        qos
    }

    /// The offer's QoS with the traffic of this descriptor.
    fn qos_with(&self, traffic: &Fields) -> Qos {
        let bearer = match self.value(id::BEARER_CAPABILITY) {
            Some(Ie::Bearer(bearer)) => Some(bearer),
            _ => own_bearer(&self.qos, self.multipoint),
        };
        let mut qos = convert::qos(traffic, bearer.as_ref(), None);
        for (new, old) in [(&mut qos.tx, &self.qos.tx), (&mut qos.rx, &self.qos.rx)] {
            new.max_sdu = old.max_sdu;
            (new.max_cdv, new.second_cdv) = (old.max_cdv, old.second_cdv);
            if new.category != Some(ServiceCategory::Abr) {
                new.min_pcr = old.min_pcr;
            }
        }
        qos
    }
}

fn own_bearer(qos: &Qos, multipoint: bool) -> Option<Bearer> {
    match convert::elements(qos, multipoint, Version::Uni40) {
        [_, _, Ie::Bearer(bearer), _] => Some(bearer),
        _ => None,
    }
}

/// Replaces the element with the same identifier, or appends the element.
pub(super) fn replace(elements: &mut Vec<Element>, new: Element) {
    match elements.iter_mut().find(|e| e.id == new.id) {
        Some(old) => *old = new,
        None => elements.push(new),
    }
}

impl super::ConnectInfo {
    /// The traffic descriptor that the called side, or a network on the way, has chosen.
    #[must_use]
    pub fn traffic(&self) -> Option<Fields> {
        let element = self
            .elements
            .iter()
            .find(|e| e.id == id::TRAFFIC_DESCRIPTOR)?;
        match ie::decode(element) {
            Ok(Ie::Traffic(fields)) => Some(fields),
            _ => None,
        }
    }
    /// Sets the chosen traffic descriptor, or removes it.
    pub fn set_traffic(&mut self, traffic: Option<&Fields>) {
        match traffic {
            Some(fields) => replace(&mut self.elements, Ie::Traffic(fields.clone()).encode()),
            None => self.elements.retain(|e| e.id != id::TRAFFIC_DESCRIPTOR),
        }
    }
}
