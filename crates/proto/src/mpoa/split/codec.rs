//! The daemon's messages as octets: see [`crate::split::codec`].

use super::{FromMpcd, ToMpcd};
use crate::mpoa::messages::{ToDaemon, ToKernel};
use crate::{split_choice, split_record};
use aerostat_wire::mpoa::{FlowFilter, QosEntry};

split_record!(FlowFilter {
    destination,
    destination_port,
    protocol,
    source,
    source_port
});
split_record!(QosEntry { filter, qos });

// Tables 4.1 and 4.2, with the numbers of the Linux client; the numbers 4xx stand for socket calls of the Linux client,
// or for messages that it does not have.
split_choice!(ToKernel {
    101 TriggerReceived { mps, destination };
    102 ResolutionReply(info);
    103 IngressPurge { mps, destination, prefix };
    104 EgressPurged { mps, cache_id };
    105 MpsDeath { mps };
    106 CacheImposition(info);
    107 SetMpcControlAddress(address);
    108 SetMpsMacAddress { itf, mac, mps };
    109 CleanUpAndExit;
    110 SetParams(params);
    301 Reload;
    401 Attach { conn, peer, vc, qos, opened, flow };
    402 Detach { conn, cause };
    403 OpenFailed { egress, qos, flow, cause };
});
split_choice!(ToDaemon {
    201 SendResolutionRequest { info, qos };
    202 SetMpsControlAddress { itf, mps };
    203 SendResolutionRetry(info);
    204 StopKeepAlive { mps };
    205 EgressEntryRemoved { mps, cache_id };
    206 SendEgressPurge(info);
    207 Die;
    209 OpenIngressSvc { info, qos };
    301 Reload;
    411 CloseShortcut { conn };
    413 IngressEntry(info);
    414 EgressEntry(info);
});
split_choice!(ToMpcd {
    1 Start { config, params, elans };
    2 Stop { reload };
    3 ElanUp(elan);
    4 ElanDown { itf };
    5 Params(params);
    6 Message(message);
});
split_choice!(FromMpcd {
    1 Message(message);
    2 Discover { itf, mac };
    3 Counted(counters);
    4 Watched(servers);
});
