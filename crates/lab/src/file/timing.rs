//! Keys about the time that nodes take.

use super::{
    CostText, CpuService, Name, Nice, PathId, Ppm, Probability, ReceiveRate, Time, TunnelFile,
};
use crate::field::{At, Table, section};

section! {
    /// The CPU of an embedded host: one server for all packets that the host sends and receives. In virtual time, and in
    /// real time as exactly as the machine wakes up.
    CpuFile {
        /// What a packet costs that the host sends; default 0s.
        send: Option<At<CostText>>,
        /// What a packet costs that the host receives; default 0s.
        receive: Option<At<CostText>>,
        /// What a TCP segment without payload costs, sent or received; default: as other packets of its direction.
        ack: Option<At<CostText>>,
        /// Where packets over LAN emulation cost something else.
        lane: Option<CostsFile>,
        /// Where packets over MPOA shortcuts cost something else.
        mpoa: Option<CostsFile>,
        /// Where packets over Classical IP cost something else.
        clip: Option<CostsFile>,
        /// Where PDUs of programs cost something else.
        native: Option<CostsFile>,
        /// Where packets of ATP of programs cost something else than other PDUs of programs; its ack is for ACKs and NAKs.
        atp: Option<CostsFile>,
        /// interrupt-first: received packets go before those to be sent; fair: in the order of arrival; default interrupt-first.
        service: Option<At<CpuService>>,
        /// Each cost is multiplied by a random number of 1 - jitter to 1 + jitter; default 0.
        jitter: Option<At<Probability>>,
        /// Packets that may wait, for each direction, 1 to 1000000; default 300.
        queue: Option<At<u64>>,
    }
}
section! {
    /// What packets of one encapsulation cost, where it differs.
    CostsFile {
        /// What a packet costs that the host sends.
        send: Option<At<CostText>>,
        /// What a packet costs that the host receives.
        receive: Option<At<CostText>>,
        /// What a TCP segment without payload costs, sent or received.
        ack: Option<At<CostText>>,
    }
}
section! {
    /// The signalling manager of an embedded host or a switch: a process that takes time for each message of call control.
    ManagerFile {
        /// What a message costs where it is read and where it is written; default 0s.
        message: Option<At<CostText>>,
        /// What it costs to pass a message from one process to another: from the kernel to the manager or back, and at a host
        /// also from a user to the manager or back; default 0s.
        hand_over: Option<At<CostText>>,
        /// RELEASE and RELEASE COMPLETE and their hand-overs cost this share of what other messages cost; default 1.
        release: Option<At<Probability>>,
        /// PDUs of a signalling channel that may wait, at a host and for each port of a switch, 1 to 1000000; default 300.
        queue: Option<At<u64>>,
        /// Programs that compete with the manager of a host for its CPU; default: no such programs.
        competing: Option<CompetingFile>,
    }
}
section! {
    /// Programs that compete with a manager for the CPU, as shell pipelines do, under the scheduler of 4.3BSD.
    CompetingFile {
        /// How many programs, 0 to 20; default 1.
        programs: Option<At<u64>>,
        /// Nice value of the manager, -20 (most urgent) to 19; that of the programs is 0; default 0.
        nice: Option<At<Nice>>,
        /// Mean time of a program in the kernel, where it is not interrupted, 0s to 1s; default 20ms.
        kernel: Option<At<Time>>,
        /// Mean time of a program in user mode between two times in the kernel, 0s to 1s; default 20ms.
        user: Option<At<Time>>,
        /// CPU time after which a process of a program ends and a new one begins, 1ms to 1h; default 100ms.
        life: Option<At<Time>>,
    }
}
section! {
    /// An adapter that takes time for received PDUs of all connections, or that shapes paths or in rate queues.
    AdapterFile {
        /// How fast it puts PDUs together and passes them to the host: PDUs or cells per second; needs buffer.
        receive: Option<At<ReceiveRate>>,
        /// PDUs that it can hold, with the one that it works on, 1 to 1000000; a PDU that finds no room is lost; needs
        /// receive.
        buffer: Option<At<u64>>,
        /// Shaped paths by VPI: the cells of all permanent connections with this VPI here leave at the peak rate at most.
        paths: Option<Table<PathId, TunnelFile>>,
        /// Rate queues by name: the cells of all connections and calls with this rate_queue leave at the peak rate at most.
        rate_queues: Option<Table<Name, TunnelFile>>,
    }
}
section! {
    /// The clock of an embedded host, by which its programs and its TCP go.
    ClockFile {
        /// How late it is, 0s to 10s; its programs send as much later; default 0s.
        phase: Option<At<Time>>,
        /// How much faster it runs, in millionths, between -1000 and 1000; negative: slower; default 0.
        ppm: Option<At<Ppm>>,
    }
}
