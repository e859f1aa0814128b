//! Assignment of a client to an ELAN. Source: LUNI 2.0 clause 5.3; af-lane-0057 (assignment policies).

use super::LecsConfig;
use aerostat_wire::lane::{ControlFrame, ElanName, LanType, MaxFrameSize, Status, Tlv};
use aerostat_wire::{AtmAddress, MacAddr};

crate::split_record! {
    /// A set of ATM addresses: those that agree with `value` in the bits set in `mask`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AddressPattern {
        /// Value.
        pub value: AtmAddress,
        /// Bits that are compared.
        pub mask: [u8; 20],
    }
}

impl AddressPattern {
    /// Addresses that begin with the first `octets` octets of `value`.
    #[must_use]
    pub fn prefix(value: AtmAddress, octets: usize) -> Self {
        let mut mask = [0; 20];
        mask.iter_mut().take(octets).for_each(|m| *m = 0xff);
        Self { value, mask }
    }
    /// True if `address` is in the set.
    #[must_use]
    pub fn matches(&self, address: AtmAddress) -> bool {
        let pairs = self.value.0.iter().zip(address.0).zip(self.mask);
        pairs.into_iter().all(|((v, a), m)| v & m == a & m)
    }
}

crate::split_record! {
    /// One ELAN.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Elan {
        /// Name.
        pub name: ElanName,
        /// Its LES.
        pub les: AtmAddress,
        /// LESs that take over, in this order, if the first LES is lost.
        pub standby: Vec<AtmAddress>,
        /// LAN type.
        pub lan_type: LanType,
        /// Frame size.
        pub max_frame: MaxFrameSize,
        /// TLVs for its clients: LEC variables, MPC parameters, ELAN-ID.
        pub tlvs: Vec<Tlv>,
        /// Patterns of addresses that may join by name, and that belong to this ELAN; empty: every client may join by
        /// name, no client belongs here by address.
        pub members: Vec<AddressPattern>,
        /// MAC addresses of clients that belong to this ELAN.
        pub macs: Vec<MacAddr>,
    }
}

impl Elan {
    /// An Ethernet ELAN with 1516-octet frames, open to all.
    #[must_use]
    pub fn new(name: ElanName, les: AtmAddress) -> Self {
        Self {
            name,
            les,
            standby: Vec::new(),
            lan_type: LanType::ETHERNET,
            max_frame: MaxFrameSize::S1516,
            tlvs: Vec::new(),
            members: Vec::new(),
            macs: Vec::new(),
        }
    }
    /// All its LESs, the first choice first.
    pub(super) fn servers(&self) -> impl Iterator<Item = AtmAddress> + '_ {
        core::iter::once(self.les).chain(self.standby.iter().copied())
    }
    fn lists(&self, address: AtmAddress) -> bool {
        self.members.iter().any(|pattern| pattern.matches(address))
    }
}

/// Criterion that assigns a client to an ELAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The client names the ELAN.
    Name,
    /// The ELAN lists the client's ATM address ([`Elan::members`]).
    Address,
    /// The ELAN lists the client's MAC address ([`Elan::macs`]).
    Mac,
    /// The client asks for the LAN type of the ELAN.
    LanType,
    /// The client asks for the frame size of the ELAN.
    FrameSize,
}

impl Criterion {
    fn points(self, elan: &Elan, frame: &ControlFrame) -> bool {
        match self {
            Self::Name => !frame.elan.is_empty() && elan.name.same(&frame.elan),
            Self::Address => elan.lists(frame.source_atm),
            Self::Mac => frame
                .source
                .as_mac()
                .is_some_and(|mac| elan.macs.contains(&mac)),
            Self::LanType => frame.lan_type == elan.lan_type,
            Self::FrameSize => frame.max_frame == elan.max_frame,
        }
    }
}

/// Number of the ELAN that a client gets.
///
/// # Errors
/// The reason why the client gets no ELAN.
pub(super) fn choose(
    config: &LecsConfig,
    frame: &ControlFrame,
    caller: Option<AtmAddress>,
) -> Result<usize, Status> {
    if frame.version != 1 {
        return Err(Status::VERSION);
    }
    if caller.is_some_and(|caller| !caller.same_end_system(&frame.source_atm)) {
        return Err(Status::ATM_ADDRESS);
    }
    let elans = &config.elans;
    let by_level = config.policies.iter().find_map(|level| {
        let points = |elan: &Elan| level.iter().all(|one| one.points(elan, frame));
        elans
            .iter()
            .position(|elan| !level.is_empty() && points(elan))
    });
    let fallback = || {
        let name = config.default.as_ref().filter(|_| frame.elan.is_empty())?;
        elans.iter().position(|elan| elan.name.same(name))
    };
    let nothing = if frame.elan.is_empty() {
        Status::INFORMATION
    } else {
        Status::NO_CONFIGURATION
    };
    let number = by_level.or_else(fallback).ok_or(nothing)?;
    let elan = &elans[number];
    let by_name = elan.name.same(&frame.elan);
    let by_mac = Criterion::Mac.points(elan, frame);
    if by_name && !elan.members.is_empty() && !elan.lists(frame.source_atm) && !by_mac {
        return Err(Status::DENIED);
    }
    if [LanType::UNSPECIFIED, elan.lan_type].contains(&frame.lan_type) {
        Ok(number)
    } else {
        Err(Status::PARAMETERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_wire::lane::{LanDestination, OpCode};

    fn at(n: u8) -> AtmAddress {
        AtmAddress::from_parts([0x47; 13], MacAddr([2, 0, 0, 0, 0, n]), 0)
    }
    fn named(name: &str) -> ElanName {
        ElanName::new(name).unwrap()
    }
    /// `open` takes every client, `red` lists host 1, `big` has large frames, `mac` lists a MAC address.
    fn config(policies: &[&[Criterion]]) -> LecsConfig {
        let mut elans: Vec<Elan> = (["open", "red", "big", "mac"].iter().enumerate())
            .map(|(n, name)| Elan::new(named(name), at(0xa0 + n as u8)))
            .collect();
        elans[1].members = vec![AddressPattern::prefix(at(1), 19)];
        elans[2].max_frame = MaxFrameSize::S9234;
        elans[3].macs = vec![MacAddr([6; 6])];
        LecsConfig {
            elans,
            policies: policies.iter().map(|level| level.to_vec()).collect(),
            ..LecsConfig::default()
        }
    }
    fn request(n: u8, name: &str) -> ControlFrame {
        let mut frame = ControlFrame::new(OpCode::CONFIGURE);
        frame.source_atm = at(n);
        frame.elan = named(name);
        frame
    }
    fn given(config: &LecsConfig, frame: &ControlFrame) -> Result<String, Status> {
        let number = choose(config, frame, Some(frame.source_atm))?;
        Ok(config.elans[number].name.to_string())
    }

    #[test]
    fn by_name_then_by_address() {
        let mut config = config(&[&[Criterion::Name], &[Criterion::Address]]);
        assert_eq!(given(&config, &request(9, "open")).as_deref(), Ok("open"));
        assert_eq!(given(&config, &request(1, "")).as_deref(), Ok("red"));
        assert_eq!(given(&config, &request(1, "red")).as_deref(), Ok("red"));
        assert_eq!(given(&config, &request(9, "red")), Err(Status::DENIED));
        assert_eq!(given(&config, &request(9, "")), Err(Status::INFORMATION));
        assert_eq!(
            given(&config, &request(9, "blue")),
            Err(Status::NO_CONFIGURATION)
        );
        // A client that names an ELAN which does not exist still belongs to the ELAN that lists its address.
        assert_eq!(given(&config, &request(1, "blue")).as_deref(), Ok("red"));
        config.default = Some(named("big"));
        assert_eq!(given(&config, &request(9, "")).as_deref(), Ok("big"));
        assert_eq!(
            given(&config, &request(9, "blue")),
            Err(Status::NO_CONFIGURATION)
        );
    }

    #[test]
    fn by_mac_and_by_size() {
        let config = config(&[
            &[Criterion::Mac],
            &[Criterion::LanType, Criterion::FrameSize],
        ]);
        let mut frame = request(9, "open");
        frame.source = LanDestination::mac(MacAddr([6; 6]));
        assert_eq!(given(&config, &frame).as_deref(), Ok("mac"));
        frame.source = LanDestination::default();
        frame.max_frame = MaxFrameSize::S9234;
        assert_eq!(
            given(&config, &frame),
            Err(Status::NO_CONFIGURATION),
            "all criteria of a level must agree, and the type is not given"
        );
        frame.lan_type = LanType::ETHERNET;
        assert_eq!(given(&config, &frame).as_deref(), Ok("big"));
    }

    #[test]
    fn nobody_asks_for_another() {
        let config = config(&[&[Criterion::Name]]);
        let frame = request(1, "open");
        assert_eq!(
            choose(&config, &frame, Some(at(2))),
            Err(Status::ATM_ADDRESS)
        );
    }
}
