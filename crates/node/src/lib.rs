//! Hosts, switches, servers and routers, built from the machines of `aerostat-proto`, and the cells between them.
//!
//! | part | modules |
//! |---|---|
//! | cells: queues, shaping, policing, the table of a switch, reassembly | [`atm`] |
//! | a host's calls, and which of its services they belong to | [`signalling`] |
//! | a switch: call control, admission, routes, permanent connections | [`switch`] |
//! | an end system: services behind one port | [`host`] |
//! | IP: embedded stack, programs, router, meter | [`ip`], [`rate`] |
//! | the time that packets cost in hosts and routers | [`server`] |
//! | frames that a kernel left to its network card | [`offload`] |
//! | distributions of times, random numbers | [`distribution`], [`random`] |
//! | state as tables for display | [`inspect`] |
//!
//! A [`host::Host`] and a [`switch::Switch`] are machines too (see [`aerostat_proto::Machine`]): they have no clock
//! and no input or output. A host deals in AAL5 SDUs; [`host::Station`] is a host with its adapter, which deals in
//! cells. The world of `aerostat-sim` connects stations and switches by links, in virtual time; `aerostat-live` does
//! so in real time.
//!
//! # Example
//!
//! A host that is switched on calls its switch at once: the first PDU of its signalling link waits in the adapter.
//!
//! ```
//! use aerostat_node::atm::CellRate;
//! use aerostat_node::host::{Host, HostInput, Ip, Station};
//! use aerostat_node::signalling::{Config, Signalling};
//! use aerostat_proto::Instant;
//! use aerostat_wire::{Vc, q2931::Version};
//!
//! let signalling = Signalling::new(Config::new(Version::Uni40));
//! let host = Host::new("anna", signalling, Ip::None);
//! let mut station = Station::new(host, CellRate::OC3);
//! station.handle_input(HostInput::Start, Instant::ZERO);
//! assert_eq!(station.nic().queued(Vc::SIGNALLING), 1); // cells
//! ```
//!
//! The example `by_hand` of `aerostat-sim` puts a switch, servers and hosts together and runs them. Read [`host`]
//! first: its picture shows how machines become a node.

pub mod atm;
mod daemon_message;
pub mod distribution;
mod encapsulation;
pub mod host;
pub mod inspect;
pub mod ip;
pub mod manager;
pub mod offload;
pub mod random;
pub mod rate;
pub mod server;
pub mod signalling;
pub mod switch;
