//! Whole subnets under faults: whatever was lost, cut or restarted, all members find each other when it is over.

use super::*;
use proptest::prelude::*;

/// A fault in the subnet; numbers select members.
#[derive(Clone, Debug)]
enum Fault {
    /// A packet from one member to another.
    Send(usize, usize),
    /// A member ends silently, or restarts.
    Power(usize, bool),
    /// All connections of a member with this encapsulation are cut.
    Cut(usize, bool),
    /// From now on, one of this many SDUs is lost; 0 means no loss.
    Loss(u8),
    Wait(u16),
}

fn fault(members: usize) -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => (0..members, 0..members).prop_map(|(from, to)| Fault::Send(from, to)),
        2 => (0..members, any::<bool>()).prop_map(|(who, on)| Fault::Power(who, on)),
        1 => (0..members, any::<bool>()).prop_map(|(who, mux)| Fault::Cut(who, mux)),
        1 => (0_u8..5).prop_map(Fault::Loss),
        3 => prop_oneof![1_u16..20, 20_u16..1500].prop_map(Fault::Wait),
    ]
}

const MEMBERS: usize = 4;

/// Member 0 is the server. `mux` and `contract` have a bit for each member.
fn member(n: usize, mux: u8, contract: u8) -> Member {
    let mut config = if n == 0 { server() } else { client(n) };
    config.mux = mux & 1 << n != 0;
    if contract & 1 << n != 0 {
        let to = (n + 1) % MEMBERS;
        config.hops.qos = vec![(ip(to), Qos::cbr(100, 0))];
    }
    Member::new(config)
}

/// Loses one of `one_in` SDUs, by a random generator of its own.
fn lose(w: &mut Net, one_in: u8) {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(one_in);
    w.net.loss = None;
    if one_in > 0 {
        w.net.loss = Some(Box::new(move |_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 33).is_multiple_of(u64::from(one_in))
        }));
    }
}

proptest! {
    #[test]
    fn everybody_finds_everybody_when_it_is_over(
        mux in 0_u8..1 << MEMBERS,
        contract in 0_u8..1 << MEMBERS,
        faults in prop::collection::vec(fault(MEMBERS), 0..30),
    ) {
        let mut w = World::new(Duration::from_millis(1));
        let mut on = [true; MEMBERS];
        for who in 0..MEMBERS {
            w.add(member(who, mux, contract));
            start(&mut w, who);
        }
        for fault in faults {
            match fault {
                Fault::Send(from, to) if on[from] && from != to => send(&mut w, from, ip(to), 0),
                Fault::Send(..) => {}
                Fault::Power(who, wanted) => {
                    w.replace(who, member(who, mux, contract));
                    on[who] = wanted;
                    if wanted {
                        start(&mut w, who);
                    }
                }
                Fault::Cut(who, mux) => {
                    let now = w.now;
                    w.net.break_calls(who, if mux { Sap::IP } else { Sap::LLC }, now);
                }
                Fault::Loss(one_in) => lose(&mut w, one_in),
                Fault::Wait(seconds) => w.run_for(Duration::from_secs(seconds.into())),
            }
        }
        w.net.loss = None;
        for who in (0..MEMBERS).filter(|who| !on[*who]) {
            start(&mut w, who);
        }
        // A refused registration waits a minute; entries of a server that refuses last twenty minutes.
        w.run_for(Duration::from_secs(21 * 60));
        prop_assert!(w.users.iter().all(|member| member.is_ready()));
        w.take_notes();
        let pairs = (0..MEMBERS).flat_map(|from| (0..MEMBERS).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            send(&mut w, from, ip(to), 1);
            w.run_for(Duration::from_secs(10));
            prop_assert_eq!(got(&mut w, to), [1], "from {} to {}", from, to);
        }
        finish(w);
    }
}
