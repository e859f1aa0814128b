//! Tables about the whole lab.

use super::{Column, TableInfo, count, counts, flag, group, number, text};
use std::borrow::Cow;

/// The table that a lab has only if a flow has a group.
pub(in crate::cmd::run) const FAIRNESS: &str = "fairness";

/// The table that a lab has only if its file says so.
pub(in crate::cmd::run) const OCCUPANCY: &str = "occupancy";

/// The table that a lab has only if a program uses ATP.
pub(in crate::cmd::run) const ATP: &str = "atp";

/// The table that a lab has only if a program wants the series of its window.
pub(in crate::cmd::run) const ATP_WINDOW: &str = "atp_window";

/// The table that a lab has only if a flow wants the series of its packets.
pub(in crate::cmd::run) const FLOW_DELTAS: &str = "flow_deltas";

/// The table that a lab has only with testers of cells.
pub(in crate::cmd::run) const CELLS: &str = "cells";

/// The tables that not every lab has.
pub(in crate::cmd::run) const RARE: [&str; 6] =
    [FAIRNESS, FLOW_DELTAS, OCCUPANCY, ATP, ATP_WINDOW, CELLS];

/// Times of a distribution.
const TIMES: &[Column] = &[
    number("min", "smallest").or_null(),
    number("mean", "arithmetic mean").or_null(),
    number("p50", "median").or_null(),
    number("p99", "99th percentile").or_null(),
    number("p99_9", "99.9th percentile").or_null(),
    number("max", "largest").or_null(),
    number("variance", "variance of the values measured, µs²").or_null(),
    number("standard_deviation", "square root of the variance").or_null(),
];

const CTD: &[Column] = &[
    count("cells", "cells measured: the last ones of PDUs"),
    number("min", "smallest"),
    number("mean", "arithmetic mean"),
    number("p50", "median"),
    number("p99", "99th percentile"),
    number("p99_9", "99.9th percentile"),
    number("max", "largest"),
    number(
        "standard_deviation",
        "standard deviation of the values measured",
    ),
];

const CDV: &[Column] = &[
    number("mean", "arithmetic mean"),
    number("p50", "median"),
    number("p99", "99th percentile"),
    number("p99_9", "99.9th percentile"),
    number("max", "largest: the peak-to-peak CDV"),
];

const CALL: &[Column] = &[
    number(
        "r_factor",
        "rating R of the E-model (ITU-T G.107), 0 to 93.2",
    ),
    number("mos", "mean opinion score that follows from it, 1 to 4.5"),
    number(
        "mouth_to_ear_ms",
        "delay from mouth to ear, with packets and play-out buffer",
    ),
    number(
        "lost_or_late_percent",
        "packets that did not come, or came too late to be played",
    ),
];

pub(super) const TABLES: &[TableInfo] = &[
    TableInfo {
        name: "flows",
        what: Cow::Borrowed(
            "One row for each flow of `traffic:` and phase in which it had packets; a flow that never sent has one, too. `offered = sent + refused`, `sent = delivered + lost + under_way`.",
        ),
        columns: Cow::Borrowed(&[
            text("name", "name of the flow"),
            text("from", "sending host"),
            text("to", "receiving host"),
            text("phase", "the way that packets took: `direct` inside one subnet, `routed` or `shortcut`"),
            number("duration_s", "time in this phase: from the start of the flow, or the change to the phase, to the change to another, or the end of the flow or of the run; the sum of such stretches. A flow with `bytes:`, or of programs on a kernel, has no end of its own: from the first packet offered to the last one"),
            number("tail_s", "time from the end of the flow to the last packet received, the same in all its phases"),
            number("throughput_mbps", "payload received, over `duration_s` and the time after each such stretch to the last packet of the phase that was received before the next one, Mbit/s; null if `duration_s` is 0").or_null(),
            count("offered", "packets that the sending program made; of TCP, segments with data that its host made"),
            count("refused", "of these, packets that the sender's stack did not take"),
            counts("refused_by", "of these, by the reason"),
            count("sent", "packets that the sender's stack took"),
            count("delivered", "packets that reached the receiver's stack"),
            count("under_way", "packets in queues, on links and in hosts at the end"),
            counts("lost_by", "packets lost, by the place where they, or their first cells, were discarded"),
            count("unexplained", "packets lost at no known place"),
            count("sent_octets", "octets of payload sent"),
            count("delivered_octets", "octets of payload that the receiver did not have yet"),
            count("answered", "echo requests whose answer came back; null of a flow that is no ping").or_null(),
            count("unanswered", "echo requests delivered whose answers are neither back nor under way; null of a flow that is no ping").or_null(),
            count("sent_packets", "as `sent`"),
            count("received_packets", "as `delivered`"),
            count("retransmitted", "of those sent, TCP segments sent before"),
            count("lost", "packets that did not arrive"),
            count("in_flight", "as `under_way`"),
            count("out_of_sequence", "packets that were overtaken"),
            group("delay_us", TIMES, "one-way delay, from stack to stack; its values are null if no packet was delivered"),
            group("jitter_us", TIMES, "difference of the delays of a packet and the one before; its values are null if fewer than two packets were delivered"),
            group("rtt_us", TIMES, "round trips of echoes").or_null(),
            group("call", CALL, "rating of a telephone call").or_null(),
            count("deltas_left_out", "packets that arrived and that `flow_deltas` does not have, because it has 100 000 of the flow; only of flows with `series: true`").or_missing(),
            text("tcp", "implementation and congestion control of the sender's TCP; only of flows with a host that has the key `tcp`, or with `write`").or_missing(),
        ]),
    },
    TableInfo {
        name: "flow_losses",
        what: Cow::Borrowed(
            "One row for each place at which packets of a flow were lost, or refused, in a phase: `lost_by` and `refused_by` of table `flows`, and what is unexplained.",
        ),
        columns: Cow::Borrowed(&[
            text("flow", "name of the flow"),
            text("phase", "the way that packets took, as in `flows`"),
            text("what", "`lost`, `refused` or `unexplained`"),
            text("place", "where packets were lost, or why they were refused; nothing if that is not known").or_null(),
            count("packets", "packets"),
        ]),
    },
    TableInfo {
        name: FAIRNESS,
        what: Cow::Borrowed(
            "One row for each `group:` of flows, and one for all flows of the lab; only if a flow has a group.",
        ),
        columns: Cow::Borrowed(&[
            text("group", "the group; null: all flows").or_null(),
            count("flows", "flows, also those that never sent"),
            number("jain_index", "Jain's index of the throughputs, above 0 and at most 1; null if nothing was received").or_null(),
            number("throughput_mbps", "sum of the throughputs of payload, each over `duration_s` of all phases of the flow and `tail_s`, Mbit/s"),
            number("smallest_mbps", "smallest throughput of a flow"),
            number("largest_mbps", "largest throughput of a flow"),
        ]),
    },
    TableInfo {
        name: FLOW_DELTAS,
        what: Cow::Borrowed(
            "One row for each packet of a flow with `series: true` that arrived after another one by the same way, in the order of arrival: the time between the two (the \"delta time\" of Figures 5.3 to 5.7 of the thesis) at both ends. At most the first 100 000 packets of a flow.",
        ),
        columns: Cow::Borrowed(&[
            text("flow", "name of the flow"),
            text("phase", "the way that both packets took, as in `flows`"),
            count("packet", "number of the packet in the order of sending, from 0"),
            number("sent_delta_us", "time from the sending of the packet that arrived before it to its own; negative if the two changed their order"),
            number("received_delta_us", "time from the arrival of that packet to its own"),
        ]),
    },
    TableInfo {
        name: OCCUPANCY,
        what: Cow::Borrowed(
            "One row for each sample of `occupancy:` and port of a switch in front of its links; only labs with that key have it. A cell that has begun to leave does not count.",
        ),
        columns: Cow::Borrowed(&[
            number("time_s", "time of the sample"),
            text("node", "the switch"),
            text("link", "the link"),
            count("guaranteed", "cells in the buffer of CBR and VBR"),
            count("best_effort", "cells in the buffer of ABR, GFR and UBR"),
        ]),
    },
    TableInfo {
        name: "shortcuts",
        what: Cow::Borrowed(
            "One row for each destination for which a client asked: the ingress caches of MPOA clients and the ways of NHRP clients.",
        ),
        columns: Cow::Borrowed(&[
            text("from", "the host"),
            text("by", "`mpoa` or `nhrp`: whose client it is"),
            text("destination", "IP address, or network"),
            text("state", "state of the entry"),
            count("holding_s", "seconds for which the entry still holds").or_null(),
            count("packets", "packets sent by the shortcut").or_null(),
            count("vpi", "VPI of the shortcut at the host").or_null(),
            count("vci", "VCI of the shortcut at the host").or_null(),
            text("egress", "ATM address at the other end").or_null(),
            text("tag", "MPOA tag that the egress asked for").or_null(),
            text("mps", "control address of the MPOA server").or_null(),
            count("last_code", "code of the last answer that was no success").or_null(),
            count(
                "last_cause",
                "cause of the last call that failed, or of a release that was not normal",
            )
            .or_null(),
            text("protocol", "protocol of a flow with QoS of its own").or_null(),
            count("port", "destination port of a flow with QoS of its own").or_null(),
            text("traffic", "contract of a flow with QoS of its own").or_null(),
            text("fallback", "the network had no bandwidth for that contract").or_null(),
        ]),
    },
    TableInfo {
        name: "programs",
        what: Cow::Borrowed(
            "One row for each call between programs with ATM sockets, and for each permanent connection over all lives of its hosts, and direction in which PDUs were offered. `offered = sent + refused + waiting`, `sent = delivered + lost + under_way`.",
        ),
        columns: Cow::Borrowed(&[
            text("from", "node of the program that writes"),
            text("program", "that program"),
            text("to", "node of the program that reads; nothing if the connection leads out of the lab or to a user that is no program, and for answers to a caller that is not known").or_null(),
            text("reader", "that program").or_null(),
            text("state", "last state of the connection at the end that writes: `calling`, `accepted`, `open` or `ended`; `ended` if its host was switched off"),
            count("offered", "PDUs that the program began to write, or had to send back"),
            count("refused", "of these, PDUs that were never sent, also because the host was switched off"),
            count("waiting", "PDUs that wait for room in the adapter"),
            count("late", "PDUs that were written after their time"),
            count("sent", "PDUs that the adapter took"),
            count("delivered", "PDUs that reached a program; nothing if the connection leads out of the lab, or to a user that is no program").or_null(),
            count("lost", "PDUs that were lost; nothing if `delivered` is nothing").or_null(),
            counts("lost_by", "lost PDUs by node, port or link, and reason, as in `flows`"),
            count("under_way", "PDUs that are in queues, on links or in hosts at the end").or_null(),
            count("delivered_octets", "octets of the PDUs delivered; nothing if `delivered` is nothing").or_null(),
            number("duration_s", "time from the first to the last PDU that the adapter took; of a permanent connection the sum over all lives of its host"),
            number("throughput_mbps", "`delivered_octets` over the time from the first PDU that the adapter took to the last one taken or delivered, or that of `offered` PDUs at the rate of the program until the end of the run, if that is longer, Mbit/s; in the last life of the host with PDUs; null if nothing was delivered, and for a single PDU of a program without a rate").or_null(),
            group("delay_us", TIMES, "time from the writer's adapter to the reading program, in the last life of the host with PDUs; its values are null if no PDU was delivered"),
        ]),
    },
    TableInfo {
        name: ATP,
        what: Cow::Borrowed(
            "One row for each end of a connection whose programs use ATP, if PDUs were offered there; only in labs with such programs. The figures are those of the last life of the host.",
        ),
        columns: Cow::Borrowed(&[
            text("node", "node of the program"),
            text("program", "the program"),
            text("profile", "rules: `report` or `adaptive`"),
            text("outcome", "`open`, `complete`, or why it ended"),
            number("send_mbps", "`octets_sent` over `send_s`, Mbit/s").or_null(),
            number("receive_mbps", "`octets_received` without those of the first packet, over `receive_s`, Mbit/s; nothing if that is 0").or_null(),
            count("octets_sent", "octets of these"),
            count("octets_received", "octets of these"),
            count("left", "octets that the program had not given to ATP"),
            number("send_s", "time from the first message given until everything was acknowledged; nothing before").or_null(),
            number("receive_s", "time from the first packet to the last packet of the last complete message"),
            count("messages_sent", "messages given to ATP"),
            count("messages_received", "complete messages received"),
            count("refused", "messages that an echo could not send back"),
            number("turn_s", "time from the first message given to the last complete message that came back; nothing if no message came back").or_null(),
            count("packets_sent", "packets sent for the first time"),
            count("packets_repeated", "packets sent again"),
            count("packets_received", "packets received for the first time"),
            count("duplicates", "packets received that were there already"),
            count("no_room", "packets dropped: the user did not read"),
            count("out_of_window", "packets dropped: their number was too far ahead"),
            count("malformed", "SDUs that are no PDU of ATP, or are longer than the MTU"),
            count("acks_sent", "ACKs sent"),
            count("naks_sent", "NAKs sent"),
            count("naks_received", "NAKs received"),
            count("timeouts", "expired retransmission timers"),
            number("window_min", "smallest window, packets"),
            number("window_max", "largest window, packets"),
            number("window_last", "last window, packets"),
            number("round_trip_us", "smoothed round trip at the end"),
            count("steps_left_out", "changes of the window that `atp_window` does not have, because it has 10 000 of the connection"),
        ]),
    },
    TableInfo {
        name: ATP_WINDOW,
        what: Cow::Borrowed(
            "One row for each change of the window of a program with `series: true` in `atp:`; only in labs with such programs. Those of the last life of the host, by its clock.",
        ),
        columns: Cow::Borrowed(&[
            number("time_s", "when"),
            text("node", "node of the program"),
            text("program", "the program"),
            count("connection", "number of its connection on the host, from 0"),
            number("window", "window since then, packets"),
            number("round_trip_us", "smoothed round trip then, µs; before the first measurement the one that ATP begins with"),
        ]),
    },
    TableInfo {
        name: CELLS,
        what: Cow::Borrowed(
            "One row for each tester of cells (after ITU-T O.191): what it has measured in the last life of its host; only in labs with testers. Cells that are lost behind the last received one are in `programs` only.",
        ),
        columns: Cow::Borrowed(&[
            text("node", "node of the tester"),
            text("program", "the tester"),
            text("vc", "VPI.VCI of its connection there"),
            count("received", "cells that came in order and undamaged"),
            count("errored", "cells that came damaged"),
            count("lost", "cells that did not come"),
            count("misinserted", "cells that came and did not belong there"),
            count("restarts", "times that the sender began again"),
            number("time_s", "time from the first to the last cell"),
            number("clr", "cell loss ratio: lost / (received + errored + lost)").or_null(),
            number("cer", "cell error ratio: errored / (received + errored)").or_null(),
            number("cmr_per_s", "cell misinsertion rate: misinserted / `time_s`").or_null(),
            group("ctd_us", TIMES, "cell transfer delay, from the program's write to the arrival, µs"),
            number("cdv_peak_us", "largest less smallest transfer delay: the 2-point cell delay variation, peak to peak, µs").or_null(),
            group("early_us", TIMES, "1-point cell delay variation: how early cells came by the peak cell rate of the contract, µs; nothing without such a rate").or_null(),
        ]),
    },
    TableInfo {
        name: "vcs",
        what: Cow::Borrowed(
            "One row for each direction of a connection that stands at the end and each receiver of it.",
        ),
        columns: Cow::Borrowed(&[
            text("from", "node whose adapter sends"),
            text("from_vc", "VPI.VCI on its link"),
            text("to", "node at the receiving end: an end system, or a switch for signalling and ILMI").or_null(),
            text("to_vc", "VPI.VCI there").or_null(),
            text("user", "what uses the connection at the sender, such as `lec0`; `signalling` for signalling and ILMI").or_null(),
            flag("multipoint", "point-to-multipoint: there is a row for each leaf"),
            text("class", "service class: `cbr`, `rt-vbr`, `nrt-vbr`, `abr` or `ubr`; `control` for signalling and ILMI, which have no contract"),
            count("switches", "switches on the way"),
            count("cells_offered", "cells given to the sending adapter, but for those sent before the row began"),
            count("cells_refused", "of these, cells for which its queue had no room, or which went with its link"),
            count("cells_waiting", "of these, cells that wait there at the end"),
            count("cells_sent", "of these, cells that left the adapter, for a leaf since it was added: offered = refused + waiting + sent"),
            count("cells_delivered", "cells that the receiving end took"),
            count("cells_lost", "cells lost between; table `losses` says where"),
            count("cells_under_way", "cells in queues of switches and on links at the end: sent = delivered + lost + under way"),
            number("clr", "cell loss ratio: lost / (lost + delivered)").or_null(),
            count("pdus_delivered", "AAL5 PDUs put together at the receiver"),
            count("pdus_bad", "AAL5 PDUs that it threw away, because cells were missing or damaged"),
            count("cells_wasted", "of the delivered cells, those of no PDU that was put together: of a PDU that lost other cells, of a PDU that has not ended, or of OAM").or_null(),
            group("ctd_us", CTD, "cell transfer delay, µs: from the first bit's leaving the sending adapter to the last bit's arrival").or_null(),
            group("cdv_us", CDV, "cell delay variation, µs: the transfer delay less the smallest one").or_null(),
        ]),
    },
    TableInfo {
        name: "losses",
        what: Cow::Borrowed(
            "One row for each place where a connection of `vcs` lost cells.",
        ),
        columns: Cow::Borrowed(&[
            text("from", "as in `vcs`"),
            text("from_vc", "as in `vcs`"),
            text("to", "as in `vcs`").or_null(),
            text("to_vc", "as in `vcs`").or_null(),
            text("node", "node that dropped the cells, or from which the link leads that lost them"),
            count("port", "port of the node: that of the policer, the queue or the link"),
            text("reason", "`link`, or why the node dropped them"),
            count("cells", "cells lost"),
        ]),
    },
    TableInfo {
        name: "queues",
        what: Cow::Borrowed(
            "One row for each queue that is open at the end: one per VC at each output port of end systems and switches.",
        ),
        columns: Cow::Borrowed(&[
            text("node", "the node"),
            count("port", "its port; 0 on an end system"),
            text("vc", "VPI.VCI on the outgoing link"),
            text("class", "service class, which decides the order of service; `control` for signalling and ILMI: in switches before best effort, in adapters as best effort"),
            count("cells_in", "cells offered to the queue"),
            count("cells_out", "cells sent"),
            count("pdus_out", "AAL5 PDUs of which the last cell was sent"),
            count("cells_waiting", "cells that wait at the end"),
            count("cells_peak", "most cells that waited at a time"),
            count("cells_limit", "most cells that the queue holds, but for the last cell of a frame, which may be one more"),
            count("dropped_overflow", "cells dropped because the queue or the port's buffer was full"),
            count("dropped_early_discard", "cells of whole frames dropped because the queue was long when the frame began"),
            count("dropped_partial_discard", "the other cells of frames that had lost one"),
            count("dropped_low_priority", "cells with CLP 1 dropped above the threshold"),
            count(
                "dropped_link_down",
                "cells that waited when the link failed, or came while it was down",
            ),
            number("clr", "dropped / (dropped + sent)").or_null(),
        ]),
    },
    TableInfo {
        name: "policers",
        what: Cow::Borrowed(
            "One row for each direction of a connection that a switch holds to its contract.",
        ),
        columns: Cow::Borrowed(&[
            text("node", "the switch"),
            count("port", "port where the cells come in"),
            text("vc", "VPI.VCI there"),
            text("contract", "the contract, in the words of qos(7)"),
            count("cells_in", "cells that came"),
            count("cells_passed", "cells that went on, tagged ones too"),
            count("cells_tagged", "of these, cells that were given CLP 1"),
            count("cells_discarded", "cells that did not conform"),
            text("conformance", "conformance definition, CBR.1 to UBR.2"),
            count("over_peak", "cells above the peak rate, discarded"),
            count("over_peak_clp0", "cells with CLP 0 above their own peak rate, discarded or tagged"),
            count("over_sustained", "cells above the sustainable rate and its bursts, discarded or tagged"),
        ]),
    },
    TableInfo {
        name: "links",
        what: Cow::Borrowed(
            "One row for each direction of a link.",
        ),
        columns: Cow::Borrowed(&[
            text("link", "name of the link"),
            text("from", "sending node"),
            text("to", "receiving node"),
            number("rate_cps", "cells per second that the line carries"),
            number("delay_us", "propagation delay"),
            count("cells_sent", "cells put on the line: sent = delivered + lost + discarded + down + under way"),
            count("cells_delivered", "cells given to the receiving node"),
            count("cells_lost", "cells lost at random (`loss:`)"),
            count("cells_discarded", "cells whose header had errors that could not be corrected"),
            count("cells_down", "cells sent or on the way while the link was down"),
            count("cells_under_way", "cells on the line at the end"),
            count("cells_damaged", "cells with wrong bits (`bit_errors:`), discarded ones too"),
            count("headers_corrected", "of these, cells whose header was corrected"),
            count("frames", "Ethernet frames that carried the cells; null if the line carries cells one by one").or_null(),
            number("utilisation", "share of the run in which the line was busy, 0 to 1"),
        ]),
    },
];
