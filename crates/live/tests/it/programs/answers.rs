//! Answers with terms of their own, and point-to-multipoint calls.

use super::*;
use aerostat_node::atm::Sdus;

/// The offer of this node, and the texts of its contract.
fn offered(net: &mut Net<'_>, node: NodeId) -> (u32, String) {
    let end = net.now + Duration::from_secs(1);
    while net.event(end) {
        let found = net.told.iter().find_map(|(_, at, what)| match what {
            ToPrograms::Offer { offer, .. } if *at == node => {
                Some((offer.offer, offer.qos.clone()))
            }
            _ => None,
        });
        if let Some(found) = found {
            return found;
        }
    }
    panic!("no offer")
}

/// The called side answers with a smaller contract: both ends see it, and both keep to it.
#[test]
fn an_answer_changes_the_contract_for_both_ends() {
    // The version of the interfaces, the offer as the caller made it, the answer, and the contract at both ends.
    let cases = [
        (
            "",
            "ubr:tx:sdu=9180,rx:sdu=4000",
            "ubr:tx:sdu=100,rx:sdu=1500",
            ["ubr:tx:sdu=1500,rx:sdu=100", "ubr:tx:sdu=100,rx:sdu=1500"],
        ),
        (
            "uni: 3.0, ",
            "ubr:sdu=9180",
            "ubr:sdu=1500",
            ["ubr:sdu=1500", "ubr:sdu=1500"],
        ),
        (
            "uni: 4.0, ",
            "cbr:max_pcr=1000,min_pcr=200,sdu=480",
            "cbr:max_pcr=300,sdu=96",
            [
                "cbr:max_pcr=300,min_pcr=200,sdu=96",
                "cbr:max_pcr=300,min_pcr=200,sdu=96",
            ],
        ),
    ];
    for (version, asked, answer, agreed) in cases {
        let text = LAB.replace("elan: a, ip", &format!("{version}elan: a, ip"));
        let mut net = Net::of(aerostat_lab::parse("p.atm.yml", &text, &[]).unwrap().lab);
        let (x, y) = (net.node("x"), net.node("y"));
        let (listener, address) = net.listener(y);
        let caller = net.connect(x, 1, &address, asked);
        let (offer, _) = offered(&mut net, y);
        let accept = |qos: &str| accept(listener, offer, qos, silent());
        // An answer that the offer does not allow is an error with its field, and the call waits on.
        for (wrong, offset) in [("ubr:sdu=9999", 0), ("abr", 0), ("ubr:sdu=x", 8)] {
            let answer = net.done(y, 2 + offset, accept(wrong));
            let Answer::Failed(failure) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!((failure.errno, &*failure.field), (22, "qos"), "{failure:?}");
            net.told.retain(|(_, at, what)| {
                *at != y || !matches!(what, ToPrograms::Answer { number, .. } if *number < 20)
            });
        }
        net.ask(y, 30, accept(answer));
        net.until(net.now + Duration::from_secs(1));
        let Some(Answer::Opened { socket: callee }) = net.answer(y, 30).cloned() else {
            panic!("{version}{asked}: {:?}", net.failure(y, 30));
        };
        let Some(Answer::Connected { qos, .. }) = net.answer(x, 1).cloned() else {
            panic!("{version}{asked}: {:?}", net.failure(x, 1));
        };
        let contract = |text: &str| text.parse::<ConnectionQos>().unwrap().qos;
        assert_eq!(contract(&qos), contract(agreed[0]), "{version}{asked}");
        for ((node, socket), agreed) in [(x, caller), (y, callee)].into_iter().zip(agreed) {
            let number = 40 + node.0 as u16;
            let status = net.status(node, number, socket);
            let (seen, wanted) = (contract(&status.qos), contract(agreed));
            assert_eq!(seen, wanted, "{version}{asked}");
            // The longest SDU passes; a longer one is a breach of the agreed contract.
            let most: Qos = agreed.parse().unwrap();
            let sdu = vec![7; most.tx.max_sdu.into()];
            net.write(node, socket, sdu);
        }
        net.until(net.now + Duration::from_secs(1));
        let delivered = |net: &Net<'_>, node: NodeId| {
            let all = net.told.iter();
            all.filter_map(|(_, at, what)| match what {
                ToPrograms::Deliver { sdus, .. } if *at == node => Some(sdus.octets()),
                _ => None,
            })
            .collect::<Vec<_>>()
        };
        let most = |text: &str| usize::from(text.parse::<Qos>().unwrap().tx.max_sdu);
        assert_eq!(delivered(&net, y), [most(agreed[0])], "{version}{asked}");
        assert_eq!(delivered(&net, x), [most(agreed[1])], "{version}{asked}");
        let sdu = vec![7; most(agreed[0]) + 1];
        net.write(x, caller, sdu);
        net.until(net.now + Duration::from_secs(1));
        let status = net.status(y, 60, callee);
        assert_eq!((&*status.state, status.cause), ("ended", 111), "{status:?}");
    }
}

/// Accepts the next offer of a node; the new socket.
fn accepted(net: &mut Net<'_>, node: NodeId, listener: SocketRef) -> SocketRef {
    let (offer, _) = offered(net, node);
    let request = accept(listener, offer, "", silent());
    net.ask(node, 70, request);
    net.until(net.now + Duration::from_millis(200));
    let Some(Answer::Opened { socket }) = net.answer(node, 70).cloned() else {
        panic!("{:?}", net.failure(node, 70));
    };
    net.told.retain(|(_, at, what)| {
        *at != node || !matches!(what, ToPrograms::Answer { .. } | ToPrograms::Offer { .. })
    });
    socket
}

fn status(net: &mut Net<'_>, node: NodeId, socket: SocketRef) -> Status {
    let status = net.status(node, 71, socket);
    net.told.retain(|(_, at, what)| {
        *at != node || !matches!(what, ToPrograms::Answer { number: 71, .. })
    });
    status
}

/// PDUs that the programs of a node got, by socket.
fn pdus(net: &Net<'_>, node: NodeId, of: SocketRef) -> Vec<Vec<u8>> {
    let all = net.told.iter();
    all.filter_map(|(_, at, what)| match what {
        ToPrograms::Deliver { socket, sdus, .. } if (*at, *socket) == (node, of) => Some(sdus),
        _ => None,
    })
    .flat_map(|sdus| sdus.iter().map(<[u8]>::to_vec))
    .collect()
}

/// The root of a point-to-multipoint call, and its leaves.
struct Tree {
    root: SocketRef,
    /// Leaves 0 and 1, at the other host, and leaf 2, at the root's own.
    leaf: SocketRef,
    second: SocketRef,
    third: SocketRef,
    /// The addresses of the listeners there.
    first: String,
    own: String,
}

/// A root with leaves at two hosts, one of them its own, and a leaf that refuses.
fn tree(net: &mut Net<'_>, x: NodeId, y: NodeId) -> Tree {
    let (at_y, first) = net.listener(y);
    let (at_x, own) = net.listener(x);
    net.told.clear();
    let root = net.open(x, 1);
    // The other direction does not count.
    let request = first_leaf(root, &first, "ubr:sdu=1000", true, silent());
    net.ask(x, 2, request);
    let leaf = accepted(net, y, at_y);
    let Some(Answer::Connected { qos, .. }) = net.answer(x, 2).cloned() else {
        panic!("{:?}", net.failure(x, 2));
    };
    assert_eq!(qos, "ubr,aal5:tx:sdu=1000,rx:none");
    assert_eq!(status(net, y, leaf).qos, "ubr,aal5:tx:none,rx:sdu=1000");

    // More leaves: a second one of the same host, one at the root's own host, and a wrong one.
    net.ask(x, 3, add_party(root, &first, silent()));
    let second = accepted(net, y, at_y);
    net.ask(x, 4, add_party(root, &own, silent()));
    let third = accepted(net, x, at_x);
    net.ask(x, 5, add_party(root, "y/77", silent()));
    net.until(net.now + Duration::from_secs(1));
    let (failure, _) = net.failure(x, 5).expect("nobody listens there");
    assert_eq!((failure.errno, failure.cause), (111, 88), "{failure:?}");
    Tree {
        root,
        leaf,
        second,
        third,
        first,
        own,
    }
}

/// A network with such a tree.
fn with_tree(test: impl FnOnce(&mut Net<'_>, NodeId, NodeId, &Tree)) {
    let mut net = Net::of(lab());
    let (x, y) = (net.node("x"), net.node("y"));
    let tree = tree(&mut net, x, y);
    test(&mut net, x, y, &tree);
}

/// PDUs of the root come to each leaf, and nothing comes back.
#[test]
fn a_root_and_its_leaves() {
    with_tree(data_and_counts);
}

fn data_and_counts(net: &mut Net<'_>, x: NodeId, y: NodeId, tree: &Tree) {
    let Tree {
        root,
        leaf,
        second,
        third,
        ..
    } = *tree;
    let parties = Request::Parties {
        socket: root,
        from: 0,
    };
    let Answer::Parties { parties, more: 0 } = net.done(x, 6, parties) else {
        panic!("no leaves")
    };
    let seen: Vec<_> = parties
        .iter()
        .map(|p| (p.party, &*p.called, p.active))
        .collect();
    assert_eq!(
        seen,
        [
            (0, &*tree.first, true),
            (1, &*tree.first, true),
            (2, &*tree.own, true)
        ]
    );
    assert_eq!(status(net, x, root).leaves, 3);

    // What the root sends comes to each; what a leaf writes goes nowhere, and is counted.
    let sdus = Sdus::new(vec![1; 2500], 1000);
    net.write(x, root, sdus);
    net.write(y, leaf, b"back".to_vec());
    net.until(net.now + Duration::from_secs(1));
    for (node, leaf) in [(y, leaf), (y, second), (x, third)] {
        let lengths: Vec<_> = pdus(net, node, leaf).iter().map(Vec::len).collect();
        assert_eq!(lengths, [1000, 1000, 500]);
    }
    let written = status(net, y, leaf);
    assert_eq!(
        (&*written.state, written.sent.0, written.refused),
        ("connected", 0, 1)
    );
    assert_eq!(pdus(net, x, root), Vec::<Vec<u8>>::new());
}

/// A leaf that leaves, one that is dropped, and the end with the last one.
#[test]
fn leaves_that_leave_and_the_end_with_the_last_leaf() {
    with_tree(leaving);
}

fn leaving(net: &mut Net<'_>, x: NodeId, y: NodeId, tree: &Tree) {
    let Tree {
        root,
        leaf,
        second,
        third,
        ..
    } = *tree;
    // A leaf leaves: the root is told, and the others go on.
    net.give(y, Input::Closed { socket: second });
    net.until(net.now + Duration::from_secs(1));
    assert_eq!(pdus(net, x, root), [[0, 1, 16]], "leaf 1, cause 16");
    // The root drops its own: the leaf ends, without a report.
    let drop = |party| Request::DropParty {
        socket: root,
        party,
    };
    assert_eq!(net.done(x, 7, drop(2)), Answer::Done);
    net.until(net.now + Duration::from_secs(1));
    assert_eq!(&*status(net, x, third).state, "ended");
    let Answer::Failed(failure) = net.done(x, 8, drop(2)) else {
        panic!("dropped twice")
    };
    assert_eq!((failure.errno, &*failure.field), (22, "party"));
    assert_eq!(status(net, x, root).leaves, 1);
    // With the last leaf the call ends.
    assert_eq!(net.done(x, 9, drop(0)), Answer::Done);
    net.until(net.now + Duration::from_secs(1));
    assert_eq!(&*status(net, x, root).state, "ended");
    assert_eq!(&*status(net, y, leaf).state, "ended");
    let Answer::Failed(failure) = net.done(x, 10, add_party(root, &tree.first, silent())) else {
        panic!("a leaf of a call that has ended")
    };
    assert_eq!((failure.errno, &*failure.field), (107, "socket"));
    // A socket without such a call has no leaves.
    let plain = net.open(x, 11);
    let request = Request::Parties {
        socket: plain,
        from: 0,
    };
    let Answer::Failed(failure) = net.done(x, 12, request) else {
        panic!("leaves of nothing")
    };
    assert_eq!((failure.errno, &*failure.field), (22, "socket"));
}

/// Whatever dies while a leaf is added: the request is answered, and nothing is left.
#[test]
fn a_death_while_a_leaf_is_added() {
    for death in DEATHS {
        for after in [0, 1, 2, 4, 8, 16, 32] {
            let mut net = Net::of(lab());
            let (x, y) = (net.node("x"), net.node("y"));
            let (at_y, address) = net.listener(y);
            net.told.clear();
            let root = net.open(x, 1);
            let request = first_leaf(root, &address, "ubr", true, silent());
            net.ask(x, 2, request);
            let _ = accepted(&mut net, y, at_y);
            net.ask(x, 3, add_party(root, &address, silent()));
            for _ in 0..after {
                net.event(net.now + Duration::from_secs(1));
            }
            die(&mut net, death, (x, root), (y, at_y));
            net.until(net.now + Duration::from_secs(60));
            let root_lives = !matches!(death, Death::CallersService | Death::CallersHost);
            if root_lives && death != Death::Caller {
                let told = net.answer(x, 3).is_some();
                assert!(
                    told,
                    "{death:?} after {after}: the request was not answered"
                );
            }
            let open = |node| {
                let states = net.states(node);
                states
                    .into_iter()
                    .filter(|s| *s == State::Connected)
                    .count()
            };
            let left = (open(x), open(y));
            match death {
                // A listener that has closed keeps what it has accepted.
                Death::Callee => assert!(left.0 == 1 && left.1 >= 1, "{death:?} {after}: {left:?}"),
                _ => assert_eq!(left, (0, 0), "{death:?} after {after}"),
            }
        }
    }
}

/// PDUs that were written before the caller closes arrive, where no switch on the way has a queue.
#[test]
fn the_last_words_of_a_caller() {
    let mut net = Net::of(lab());
    let (x, y) = (net.node("x"), net.node("y"));
    let (at_y, first) = net.listener(y);
    let root = net.connect(x, 2, &first, "ubr:sdu=1000");
    let leaf = accepted(&mut net, y, at_y);
    for number in 0..3 {
        assert!(net.world.asks_to_write(x, root));
        let sdu = vec![number; 1000];
        net.write(x, root, sdu);
    }
    net.give(x, Input::Closed { socket: root });
    net.until(net.now + Duration::from_secs(2));
    assert_eq!(pdus(&net, y, leaf).len(), 3);
}
