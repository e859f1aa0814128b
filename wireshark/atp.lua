-- ATP, the ATM Transport Protocol of the University of Hawaii, in SDUs of AAL5 on native VCs.
-- Nothing in an SDU tells that it is ATP, so the preference names the VCs:
--   tshark -X lua_script:wireshark/atp.lua -o "atm_atp.vcs:0.34 0.100" -r FILE
-- The name is atm_atp, because Wireshark calls the AppleTalk Transaction Protocol atp.
-- Preference of the MTU: longer packets are marked; 0 asks for no such check. Both ends of a VC need the same MTU.
-- Source: Z. Yang, ATP Implementation and Performance (1999): the fields. Their layout is Aerostat's own
-- (docs/protocols/atp.md): bit 31 last packet, bit 30 acknowledgement, 30 bits of sequence number.

local DATA, LAST, ACK, NAK, INVALID = 0, 1, 2, 3, 4
local names = {
  [DATA] = "Data", [LAST] = "Last data", [ACK] = "ACK", [NAK] = "NAK", [INVALID] = "Invalid",
}

local atp = Proto("atm_atp", "ATM Transport Protocol")
local f = atp.fields
f.type = ProtoField.uint8("atm_atp.type", "Type", base.DEC, names)
f.last = ProtoField.bool("atm_atp.last", "Last packet of a message", 32, nil, 0x80000000)
f.ack = ProtoField.bool("atm_atp.ack", "Acknowledgement", 32, nil, 0x40000000)
f.seq = ProtoField.uint32("atm_atp.seq", "Sequence number", base.DEC, nil, 0x3fffffff)
f.length = ProtoField.uint32("atm_atp.length", "Octets of data", base.DEC)
f.data = ProtoField.bytes("atm_atp.data", "Data")
f.repeats = ProtoField.framenum("atm_atp.repeats", "Repeats the packet in frame")

local e = atp.experts
e.short = ProtoExpert.new("atm_atp.short", "ATP header is shorter than four octets", expert.group.MALFORMED,
  expert.severity.ERROR)
e.flags = ProtoExpert.new("atm_atp.flags_invalid", "An acknowledgement has neither data nor an end of a message",
  expert.group.PROTOCOL, expert.severity.ERROR)
e.long = ProtoExpert.new("atm_atp.too_long", "Packet is longer than the MTU", expert.group.PROTOCOL,
  expert.severity.WARN)
e.repeated = ProtoExpert.new("atm_atp.repeated", "Packet was sent again", expert.group.SEQUENCE,
  expert.severity.NOTE)
e.nak = ProtoExpert.new("atm_atp.nak", "The receiver lacks a packet", expert.group.SEQUENCE, expert.severity.NOTE)

atp.prefs.vcs = Pref.string("VCs", "", "VCs with ATP, each as VPI.VCI, with spaces or commas between them")
atp.prefs.mtu = Pref.uint("MTU", 0, "Largest packet with its header, octets; 0 for no check")

-- What lies in front of a packet: which interface, VC and direction it belongs to.
local of = {
  Field.new("frame.interface_id"), Field.new("frame.p2p_dir"), Field.new("atm.vpi"), Field.new("atm.vci"),
}
-- First frame of each packet by place and number, and the frame that a repeated one refers to. Numbers begin anew with
-- each connection on the same VC; then a new packet is marked as a repeated one.
local first, repeats = {}, {}
function atp.init()
  first, repeats = {}, {}
end

-- The frame of the first transmission, if this packet is another one.
local function repeated(pinfo, seq)
  if not pinfo.visited then
    local key = tostring(seq)
    for _, field in ipairs(of) do
      local found = field()
      key = key .. "/" .. (found and tostring(found.value) or "")
    end
    if first[key] then repeats[pinfo.number] = first[key] else first[key] = pinfo.number end
  end
  return repeats[pinfo.number]
end

local function kind_of(last, ack, octets)
  if ack then return (last or octets > 0) and INVALID or ACK end
  if last then return LAST end
  return octets > 0 and DATA or NAK
end

function atp.dissector(buffer, pinfo, tree)
  local length = buffer:reported_len()
  pinfo.cols.protocol = "ATP"
  local sub = tree:add(atp, buffer())
  if length < 4 or buffer:len() < 4 then
    sub:add(f.type, INVALID):set_generated()
    sub:add_proto_expert_info(e.short)
    pinfo.cols.info = "Invalid: short header"
    return buffer:len()
  end
  local word, octets = buffer(0, 4):uint(), length - 4
  local last, ack = word >= 0x80000000, word % 0x80000000 >= 0x40000000
  local seq, kind = word % 0x40000000, kind_of(last, ack, octets)
  sub:add(f.type, kind):set_generated()
  sub:add(f.last, buffer(0, 4))
  sub:add(f.ack, buffer(0, 4))
  sub:add(f.seq, buffer(0, 4))
  sub:add(f.length, octets):set_generated()
  if buffer:len() > 4 then sub:add(f.data, buffer(4)) end
  local text = string.format("%s %d", names[kind], seq)
  if kind == INVALID then sub:add_proto_expert_info(e.flags) end
  if kind == NAK then sub:add_proto_expert_info(e.nak) end
  if atp.prefs.mtu > 0 and length > atp.prefs.mtu then sub:add_proto_expert_info(e.long) end
  if kind == DATA or kind == LAST then
    text = string.format("%s, %d octets", text, octets)
    local frame = repeated(pinfo, seq)
    if frame then
      sub:add(f.repeats, frame):set_generated()
      sub:add_proto_expert_info(e.repeated)
      text = text .. ", sent again"
    end
  end
  pinfo.cols.info = text
  sub:append_text(", " .. text)
  return buffer:len()
end

-- The VCs of the preference, which may change while Wireshark runs.
local registered = {}
function atp.prefs_changed()
  local vcs = DissectorTable.get("atm.reassembled.vpi_vci")
  for _, vc in ipairs(registered) do vcs:remove(vc, atp) end
  registered = {}
  for word in string.gmatch(atp.prefs.vcs, "[^%s,]+") do
    local vpi, vci = string.match(word, "^(%d+)%.(%d+)$")
    vpi, vci = tonumber(vpi), tonumber(vci)
    if vpi and vpi < 4096 and vci < 65536 then
      local vc = vpi * 65536 + vci
      vcs:add(vc, atp)
      table.insert(registered, vc)
    else
      report_failure("atm_atp.vcs: '" .. word .. "' is no VC; write VPI.VCI, for example 0.100")
    end
  end
end
