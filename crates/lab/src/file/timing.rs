//! Keys about the time that nodes take.

use super::{
    CostText, CpuService, Name, Nice, PathId, Ppm, Probability, ReceiveRate, Time, TunnelFile,
};
use crate::field::{At, Table, section};

section! {
    /// The CPU of an embedded host: one server for all packets that the host sends and receives. In virtual time, and
    /// in real time as exactly as the machine wakes up.
    CpuFile {
        /// Cost of a packet that the host sends.
        send: CostText = "0s";
        /// Cost of a packet that the host receives.
        receive: CostText = "0s";
        /// Cost of a TCP segment without payload, sent or received; default: as other packets of its direction.
        ack: Option<At<CostText>>;
        /// Cost of a write of a program to a TCP connection; its segments are made afterwards. Default: nothing.
        write: Option<At<CostText>>;
        /// Cost of a read of a program from a TCP connection; the window opens afterwards. Default: nothing.
        read: Option<At<CostText>>;
        /// Where packets over LAN emulation cost something else.
        #[schemars(with = "Option<CostsFile>")]
        lane: CostsFile;
        /// Where packets over MPOA shortcuts cost something else.
        #[schemars(with = "Option<CostsFile>")]
        mpoa: CostsFile;
        /// Where packets over Classical IP cost something else.
        #[schemars(with = "Option<CostsFile>")]
        clip: CostsFile;
        /// Where packets over an ATM line cost something else.
        #[schemars(with = "Option<CostsFile>")]
        line: CostsFile;
        /// Where PDUs of programs cost something else.
        #[schemars(with = "Option<CostsFile>")]
        native: CostsFile;
        /// Where packets of ATP of programs cost something else than other PDUs of programs; its ack is for ACKs and
        /// NAKs.
        #[schemars(with = "Option<CostsFile>")]
        atp: CostsFile;
        /// interrupt-first: received packets go before those to be sent; fair: in the order of arrival.
        service: CpuService = "interrupt-first";
        /// Each cost is multiplied by a random number of 1 - jitter to 1 + jitter.
        jitter: Probability = 0;
        /// Packets that may wait, for each direction.
        queue: u64 = 300, 1..=1_000_000;
        /// Other work of the host that takes its CPU now and then; default: none.
        interruptions: Option<InterruptionsFile>;
    }
}
section! {
    /// Other work of a host: interrupts of other devices, and programs that wake up. Packets wait for its end.
    InterruptionsFile {
        /// Mean time from the end of one to the beginning of the next, exponential.
        every: Time = "5s", "1ms"..="1h";
        /// Mean time of one, exponential; at most every.
        length: Time = "10ms", "0s"..="10s";
    }
}
section! {
    /// Costs of packets of one encapsulation, where they differ.
    CostsFile {
        /// Cost of a packet that the host sends.
        send: Option<At<CostText>>;
        /// Cost of a packet that the host receives.
        receive: Option<At<CostText>>;
        /// Cost of a TCP segment without payload, sent or received.
        ack: Option<At<CostText>>;
    }
}
section! {
    /// The signalling manager of an embedded host or a switch: a process that takes time for each message of call
    /// control.
    ManagerFile {
        /// Cost of a message where it is read and where it is written.
        message: CostText = "0s";
        /// Cost of passing a message from one process to another: from the kernel to the manager or back, and at a host
        /// also from a user to the manager or back.
        hand_over: CostText = "0s";
        /// RELEASE and RELEASE COMPLETE and their hand-overs cost this share of what other messages cost.
        release: Probability = 1;
        /// PDUs of a signalling channel that may wait, at a host and for each port of a switch.
        queue: u64 = 300, 1..=1_000_000;
        /// Programs that compete with the manager of a host for its CPU; default: no such programs.
        competing: Option<CompetingFile>;
    }
}
section! {
    /// Programs that compete with a manager for the CPU, as shell pipelines do, under the scheduler of 4.3BSD.
    CompetingFile {
        /// How many programs.
        programs: u64 = 1, 0..=20;
        /// Nice value of the manager, -20 (most urgent) to 19; that of the programs is 0.
        nice: Nice = 0;
        /// Mean time of a program in the kernel, where it is not interrupted.
        kernel: Time = "20ms", "0s"..="1s";
        /// Mean time of a program in user mode between two times in the kernel.
        user: Time = "20ms", "0s"..="1s";
        /// CPU time after which a process of a program ends and a new one begins.
        life: Time = "100ms", "1ms"..="1h";
    }
}
section! {
    /// An adapter that takes time for received PDUs of all connections, or that shapes paths or in rate queues.
    AdapterFile {
        /// How fast it puts PDUs together and passes them to the host: PDUs or cells per second; needs buffer.
        receive: Option<At<ReceiveRate>>;
        /// PDUs that it can hold, with the one that it works on, 1 to 1000000; a PDU that finds no room is lost; needs
        /// receive.
        buffer: u64, 1..=1_000_000;
        /// Shaped paths by VPI: the cells of all permanent connections with this VPI here leave at the peak rate at
        /// most.
        paths: Option<Table<PathId, TunnelFile>>;
        /// Rate queues by name: the cells of all connections and calls with this rate_queue leave at the peak rate at
        /// most.
        rate_queues: Option<Table<Name, TunnelFile>>;
    }
}
section! {
    /// The clock of an embedded host, by which its programs and its TCP go.
    ClockFile {
        /// How late it is, 0s to 10s; its programs send as much later.
        phase: Time = "0s", "0s"..="10s";
        /// How much faster it runs, in millionths, between -1000 and 1000; negative: slower.
        ppm: Ppm = 0;
    }
}
