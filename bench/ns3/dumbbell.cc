// Four bulk flows of TCP over a dumbbell in ns-3: the network of bench/labs/four-tcp.atm.yml, packet by packet.
// usage: dumbbell [SECONDS]; prints one JSON object.
//
// All links have the rate of an OC-3 and an MTU of 1500. Packets are never cut into cells here, so a link carries the
// packets that cells would leave no room for.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace
{

constexpr int FLOWS = 4;
constexpr uint16_t PORT = 5001;
constexpr uint32_t MTU = 1500;
constexpr uint32_t SEGMENT = MTU - 40 - 12; // headers of IP and TCP, time stamps
constexpr uint32_t BUFFER = 1 << 20;

/// Links of one kind.
ns3::PointToPointHelper
Links(const std::string& delay)
{
    ns3::PointToPointHelper links;
    links.SetDeviceAttribute("DataRate", ns3::StringValue("155.52Mbps"));
    links.SetDeviceAttribute("Mtu", ns3::UintegerValue(MTU));
    links.SetChannelAttribute("Delay", ns3::StringValue(delay));
    return links;
}

} // namespace

int
main(int count, char** words)
{
    const double seconds = count > 1 ? std::atof(words[1]) : 60;
    using ns3::Config::SetDefault;
    SetDefault("ns3::TcpL4Protocol::SocketType", ns3::TypeIdValue(ns3::TcpNewReno::GetTypeId()));
    SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(SEGMENT));
    SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(BUFFER));
    SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(BUFFER));

    ns3::NodeContainer switches(2);
    ns3::NodeContainer senders(FLOWS);
    ns3::NodeContainer receivers(FLOWS);
    ns3::InternetStackHelper().InstallAll();

    ns3::Ipv4AddressHelper addresses("10.1.0.0", "255.255.255.0");
    ns3::PointToPointHelper trunk = Links("5ms");
    ns3::PointToPointHelper access = Links("1ms");
    addresses.Assign(trunk.Install(switches));

    std::vector<ns3::Ptr<ns3::PacketSink>> sinks;
    for (int flow = 0; flow < FLOWS; ++flow)
    {
        addresses.NewNetwork();
        addresses.Assign(access.Install(senders.Get(flow), switches.Get(0)));
        addresses.NewNetwork();
        ns3::Ipv4InterfaceContainer far =
            addresses.Assign(access.Install(switches.Get(1), receivers.Get(flow)));

        ns3::InetSocketAddress any(ns3::Ipv4Address::GetAny(), PORT);
        ns3::PacketSinkHelper sink("ns3::TcpSocketFactory", any);
        sinks.push_back(sink.Install(receivers.Get(flow)).Get(0)->GetObject<ns3::PacketSink>());

        ns3::InetSocketAddress to(far.GetAddress(1), PORT);
        ns3::BulkSendHelper bulk("ns3::TcpSocketFactory", to);
        bulk.SetAttribute("SendSize", ns3::UintegerValue(SEGMENT));
        bulk.Install(senders.Get(flow)).Start(ns3::MilliSeconds(10 * flow));
    }
    ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ns3::Simulator::Stop(ns3::Seconds(seconds));
    ns3::Simulator::Run();
    double octets = 0;
    for (const auto& sink : sinks)
    {
        octets += static_cast<double>(sink->GetTotalRx());
    }
    std::cout << "{\"goodput_mbps\": " << octets * 8 / seconds / 1e6
              << ", \"events\": " << ns3::Simulator::GetEventCount() << "}" << std::endl;
    ns3::Simulator::Destroy();
    return 0;
}
