-- Names for what Wireshark does not know of MPOA 1.1: its NHRP packet types and extensions, and tagged data.
-- Use: tshark -X lua_script:wireshark/mpoa.lua -r FILE      (or copy it into Wireshark's plugin folder)
-- Source: MPOA 1.1 (af-mpoa-0114): packet types 128..135, extensions 0x1000..0x1005, SNAP type 0x884C.

local types = {
  [128] = "MPOA Cache Imposition Request", [129] = "MPOA Cache Imposition Reply",
  [130] = "MPOA Egress Cache Purge Request", [131] = "MPOA Egress Cache Purge Reply",
  [132] = "MPOA Keep-Alive", [133] = "MPOA Trigger",
  [134] = "MPOA Resolution Request", [135] = "MPOA Resolution Reply",
}
local extensions = {
  [0x1000] = "DLL Header", [0x1001] = "Egress Cache Tag", [0x1002] = "ATM Service Category",
  [0x1003] = "Keep-Alive Lifetime", [0x1004] = "Hop Count", [0x1005] = "Original Error Code",
  [0x0000] = "End of Extensions",
}

local mpoa = Proto("mpoa", "Multi-Protocol over ATM")
local f = mpoa.fields
f.type = ProtoField.uint8("mpoa.type", "Packet type", base.DEC, types)
f.ext_type = ProtoField.uint16("mpoa.ext.type", "Extension", base.HEX, extensions, 0x3fff)
f.ext_compulsory = ProtoField.bool("mpoa.ext.compulsory", "Compulsory", 16, nil, 0x8000)
f.ext_length = ProtoField.uint16("mpoa.ext.length", "Length", base.DEC)
f.ext_value = ProtoField.bytes("mpoa.ext.value", "Value")
f.cache_id = ProtoField.uint32("mpoa.cache_id", "Cache ID", base.DEC)
f.elan_id = ProtoField.uint32("mpoa.elan_id", "ELAN-ID", base.DEC)
f.tag = ProtoField.uint32("mpoa.tag", "Tag", base.HEX)

local nhrp_type = Field.new("nhrp.hdr.op.type")
local nhrp_extoff = Field.new("nhrp.hdr.extoff")
local nhrp_frame = Field.new("nhrp")

-- A second look at an NHRP packet: names its type and walks its extensions.
function mpoa.dissector(buffer, pinfo, tree)
  local kind, offset, frame = nhrp_type(), nhrp_extoff(), nhrp_frame()
  if not kind or not frame or not types[kind.value] then return end
  pinfo.cols.protocol = "MPOA"
  pinfo.cols.info = types[kind.value]
  local start = frame.offset
  local sub = tree:add(mpoa, buffer(start))
  sub:append_text(", " .. types[kind.value])
  sub:add(f.type, buffer(start + 17, 1))
  if offset.value == 0 then return end
  local at = start + offset.value
  while at + 4 <= buffer:len() do
    local id, length = buffer(at, 2):uint(), buffer(at + 2, 2):uint()
    local number = bit.band(id, 0x3fff)
    if at + 4 + length > buffer:len() then return end
    local item = sub:add(mpoa, buffer(at, 4 + length), extensions[number] or "Extension")
    item:add(f.ext_type, buffer(at, 2))
    item:add(f.ext_compulsory, buffer(at, 2))
    item:add(f.ext_length, buffer(at + 2, 2))
    if number == 0x1000 and length >= 9 then
      item:add(f.cache_id, buffer(at + 4, 4))
      item:add(f.elan_id, buffer(at + 8, 4))
    elseif number == 0x1001 and length == 4 then
      item:add(f.tag, buffer(at + 4, 4))
    elseif length > 0 then
      item:add(f.ext_value, buffer(at + 4, length))
    end
    if number == 0 then return end
    at = at + 4 + length
  end
end
register_postdissector(mpoa)

-- Tagged data on a shortcut: SNAP type 884C, a 4-octet tag, then the IP packet.
local tagged = Proto("mpoa_tagged", "MPOA tagged data")
tagged.fields.tag = ProtoField.uint32("mpoa_tagged.tag", "Tag", base.HEX)
local ip = Dissector.get("ip")
function tagged.dissector(buffer, pinfo, tree)
  if buffer:len() < 4 then return 0 end
  local sub = tree:add(tagged, buffer(0, 4))
  sub:add(tagged.fields.tag, buffer(0, 4))
  ip:call(buffer(4):tvb(), pinfo, tree)
  return buffer:len()
end
DissectorTable.get("ethertype"):add(0x884c, tagged)
