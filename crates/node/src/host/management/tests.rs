//! A host with a LANE and an MPOA client, and the switch's side of ILMI, message by message.

use crate::host::{Host, HostCommand, HostInput, HostOutput, Ip, Service, ServiceKind};
use crate::inspect::StateKind;
use crate::signalling::{self, Signalling};
use aerostat_proto::ilmi::{Channel, Config, Event, Ime, Input, Output, Prefix, Side, State};
use aerostat_proto::lane::{Lec, LecConfig};
use aerostat_proto::mpoa::{Mpc, MpcConfig};
use aerostat_proto::uni::Version;
use aerostat_proto::{Duration, Instant, Machine};
use aerostat_wire::lane::ElanName;
use aerostat_wire::{AtmAddress, MacAddr, Vc};
use std::collections::BTreeSet;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const FIRST: Prefix = [0x47; 13];
const SECOND: Prefix = [0x39; 13];

fn bare(selector: u8) -> AtmAddress {
    AtmAddress::from_parts([0; 13], MAC, selector)
}

struct Pair {
    host: Host,
    network: Ime,
    registered: BTreeSet<AtmAddress>,
    now: Instant,
    /// True if no message arrives.
    cut: bool,
}

impl Pair {
    fn new(version: Version, mpoa: bool) -> Self {
        let signalling = Signalling::new(signalling::Config::new(Version::Uni31));
        let mut host = Host::new("h", signalling, Ip::Kernel);
        let elan = ElanName::new("e").expect("short");
        let config = LecConfig::new(elan, bare(0), MAC);
        host.add_lec(MAC, move |_| Lec::new(config.clone()));
        let config = MpcConfig {
            itfs: vec![0],
            ..MpcConfig::new(bare(0x50), bare(0x51))
        };
        host.add_mpc(move |_| Mpc::new(config.clone()));
        if mpoa {
            host.start_mpoa_at(Instant::ZERO);
        }
        let mut config = Config::new(Side::User, MAC, Version::Uni31);
        config.esis = vec![MAC];
        host.register_by_ilmi(Channel::new(config));
        let mut config = Config::new(Side::Network, MacAddr([2, 0, 0, 0, 9, 9]), version);
        config.prefixes = vec![FIRST];
        config.lecs = vec![AtmAddress::LECS];
        let mut pair = Self {
            host,
            network: Ime::new(config),
            registered: BTreeSet::new(),
            now: Instant::ZERO,
            cut: false,
        };
        pair.host.handle_input(HostInput::Start, pair.now);
        pair
    }
    fn switch(&mut self, input: Input<'_>) {
        self.network.handle_input(input, self.now).expect("taken");
    }
    /// Carries messages until neither side has more.
    fn exchange(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(output) = self.host.poll_output() {
                let HostOutput::Send { vc, sdu } = output else {
                    continue;
                };
                if vc == Vc::ILMI && !self.cut {
                    let sdu = &sdu;
                    self.switch(Input::Message { sdu });
                    quiet = false;
                }
            }
            while let Some(output) = self.network.poll_output() {
                match output {
                    Output::Send(sdu) if !self.cut => {
                        let (vc, sdu) = (Vc::ILMI, sdu.as_slice());
                        self.host.handle_input(
                            HostInput::Sdu {
                                vc,
                                sdu: sdu.into(),
                            },
                            self.now,
                        );
                        quiet = false;
                    }
                    Output::Claim { claim, .. } => {
                        let refused = None;
                        self.switch(Input::Claimed { claim, refused });
                    }
                    Output::Event(Event::Registered(address, true)) => {
                        self.registered.insert(address);
                    }
                    Output::Event(Event::Registered(address, false)) => {
                        self.registered.remove(&address);
                    }
                    _ => {}
                }
            }
            if quiet {
                return;
            }
        }
    }
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.exchange();
            let next = [self.host.poll_timeout(), self.network.poll_timeout()];
            let next = next.into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = next;
            self.host.handle_timeout(next);
            self.network.handle_timeout(next);
        }
    }
    fn lec(&self) -> (AtmAddress, bool) {
        let Some(Service::Lec(lec)) = &self.host.slots[0].service else {
            panic!("slot 0 is the LANE client");
        };
        (lec.snapshot().address, self.host.slots[0].user)
    }
    fn starts(&self) -> Vec<u32> {
        self.host.slots.iter().map(|slot| slot.starts).collect()
    }
}

fn at(prefix: Prefix) -> AtmAddress {
    AtmAddress::from_parts(prefix, MAC, 0)
}

#[test]
fn services_wait_for_the_address() {
    let mut pair = Pair::new(Version::Uni40, true);
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.lec(), (bare(0), false), "nobody has answered");
    assert!(!pair.host.slots[1].user);
    // Neither a command nor a restart starts a service that has no address.
    for on in [false, true] {
        let command = HostCommand::Mpoa(on);
        pair.host
            .handle_input(HostInput::Command(command), pair.now);
    }
    let command = HostCommand::Restart(ServiceKind::Lec);
    pair.host
        .handle_input(HostInput::Command(command), pair.now);
    assert_eq!(pair.lec(), (bare(0), false));
    pair.switch(Input::Start);
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.lec(), (at(FIRST), true));
    assert_eq!(pair.registered, BTreeSet::from([at(FIRST)]));
    assert!(pair.host.slots[1].user, "MPOA was on");
    let tlvs = pair.host.interfaces[0].tlvs.clone();
    let value = &tlvs[0].value;
    assert!(
        value.windows(13).any(|octets| octets == FIRST),
        "MPOA announces the address that was given: {value:02x?}"
    );
    let tables = pair
        .host
        .inspect(StateKind::Ilmi, pair.now)
        .expect("has ILMI");
    assert_eq!(tables[1].rows.len(), 1, "addresses");
    assert_eq!(tables[2].rows.len(), 1, "LECSs");
}

#[test]
fn mpoa_that_is_off_stays_off() {
    let mut pair = Pair::new(Version::Uni40, false);
    pair.switch(Input::Start);
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.lec(), (at(FIRST), true));
    assert!(!pair.host.slots[1].user);
    let command = HostCommand::Mpoa(true);
    pair.host
        .handle_input(HostInput::Command(command), pair.now);
    assert!(pair.host.slots[1].user);
}

#[test]
fn a_service_that_starts_again_keeps_the_address() {
    let mut pair = Pair::new(Version::Uni40, true);
    pair.switch(Input::Start);
    pair.run(Duration::from_secs(5));
    let command = HostCommand::Restart(ServiceKind::Lec);
    pair.host
        .handle_input(HostInput::Command(command), pair.now);
    assert_eq!(pair.lec(), (at(FIRST), true));
}

#[test]
fn another_prefix_makes_services_start_anew() {
    let mut pair = Pair::new(Version::Uni40, true);
    pair.switch(Input::Start);
    pair.run(Duration::from_secs(5));
    let command = HostCommand::Crash(ServiceKind::Mpc);
    pair.host
        .handle_input(HostInput::Command(command), pair.now);
    // A second prefix changes nothing while the first one holds.
    pair.switch(Input::SetPrefixes(vec![FIRST, SECOND]));
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.lec(), (at(FIRST), true));
    assert_eq!(pair.starts(), [1, 1]);
    assert_eq!(pair.registered.len(), 2);
    pair.switch(Input::SetPrefixes(vec![SECOND]));
    pair.run(Duration::from_secs(15));
    assert_eq!(pair.registered, BTreeSet::from([at(SECOND)]));
    assert_eq!(pair.lec(), (at(SECOND), true));
    assert_eq!(pair.starts(), [2, 1], "what has crashed stays so");
}

#[test]
fn a_loss_with_the_same_address_afterwards_goes_unnoticed() {
    let mut pair = Pair::new(Version::Uni40, true);
    pair.switch(Input::Start);
    pair.run(Duration::from_secs(5));
    pair.cut = true;
    pair.run(Duration::from_secs(60));
    assert!(pair.registered.is_empty(), "the switch has noticed");
    let tables = pair
        .host
        .inspect(StateKind::Ilmi, pair.now)
        .expect("has ILMI");
    assert!(tables[1].rows.is_empty(), "and so has the host");
    pair.cut = false;
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.network.state(), State::Verifying);
    assert_eq!(pair.registered, BTreeSet::from([at(FIRST)]));
    assert_eq!(pair.lec(), (at(FIRST), true));
    assert_eq!(pair.starts(), [1, 1]);
}

#[test]
fn the_line_goes_and_comes_back() {
    let mut pair = Pair::new(Version::Uni40, true);
    pair.switch(Input::Start);
    pair.run(Duration::from_secs(5));
    for up in [false, true] {
        pair.host.line(up, pair.now);
        pair.switch(if up { Input::Start } else { Input::Stop });
        pair.run(Duration::from_secs(5));
        assert_eq!(pair.registered.len(), usize::from(up));
    }
    assert_eq!(pair.starts(), [1, 1]);
}

#[test]
fn signalling_takes_the_lower_version() {
    let mut pair = Pair::new(Version::Uni30, true);
    let version = |pair: &Pair| pair.host.signalling().version();
    assert_eq!(version(&pair), Version::Uni31);
    pair.switch(Input::Start);
    pair.run(Duration::from_secs(5));
    assert_eq!(version(&pair), Version::Uni30);
}
