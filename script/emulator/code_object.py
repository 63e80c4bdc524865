"""AMDGPU code objects (HSA code object v3 and later, ELF) as an emulator needs them: the image laid
out in memory and relocated, the kernels' descriptors and metadata."""
import ctypes
import mmap
import struct

ARCHITECTURES = {0x30: "gfx908", 0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950"}
EM_AMDGPU = 224
PT_LOAD, PT_NOTE = 1, 4
SHT_SYMTAB, SHT_RELA, SHT_DYNSYM = 2, 4, 11
NT_AMDGPU_METADATA = 32


class Refused(Exception):
    """Something that cannot be run, or whose result could not be trusted."""


def unwrap(data):
    """The AMDGPU ELF in `data`: the ELF itself, or an offload bundle with one."""
    if data[:4] == b"\x7fELF" and struct.unpack_from("<H", data, 18)[0] == EM_AMDGPU:
        return data
    at = data.find(b"__CLANG_OFFLOAD_BUNDLE__")
    if at < 0:
        raise Refused("neither an AMDGPU ELF nor an uncompressed offload bundle")
    count, = struct.unpack_from("<Q", data, at + 24)
    position = at + 32
    found = {}
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", data, position)
        position += 24
        name = data[position:position + length].decode()
        position += length
        if "amdgcn" in name and size:
            found[name] = data[at + offset:at + offset + size]
    if len(found) != 1:
        raise Refused(f"the bundle holds {sorted(found)}; one architecture is needed")
    return next(iter(found.values()))


def read_msgpack(data, at=0):
    """(value, position behind it) of the MessagePack object at `at`."""
    def collection(count, at, pairs):
        items = []
        for _ in range(count * (2 if pairs else 1)):
            value, at = read_msgpack(data, at)
            items.append(value)
        return (dict(zip(items[::2], items[1::2])) if pairs else items), at

    numbers = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
               0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    lengths = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I",
               0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}
    code = data[at]
    at += 1
    if code < 0x80:
        return code, at
    if code < 0xA0:
        return collection(code & 15, at, code < 0x90)
    if code < 0xC0:
        return data[at:at + (code & 31)].decode(), at + (code & 31)
    if code >= 0xE0:
        return code - 256, at
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code], at
    if code in numbers:
        return struct.unpack_from(numbers[code], data, at)[0], at + struct.calcsize(numbers[code])
    if code in lengths:
        length, = struct.unpack_from(lengths[code], data, at)
        at += struct.calcsize(lengths[code])
        if code <= 0xDB:
            return data[at:at + length].decode(), at + length
        return collection(length, at, code >= 0xDE)
    raise Refused(f"metadata: MessagePack type {code:#x}")


class CodeObject:
    """A linked code object, loaded and relocated at `base`."""

    def __init__(self, elf):
        self.elf = elf
        flags, = struct.unpack_from("<I", elf, 48)
        self.arch = ARCHITECTURES.get(flags & 0xFF)
        if self.arch is None:
            raise Refused(f"e_flags {flags:#x}: none of {sorted(ARCHITECTURES.values())}")
        headers, sections = struct.unpack_from("<QQ", elf, 32)
        header_size, header_count, section_size, section_count = struct.unpack_from("<HHHH", elf, 54)
        self._segments = [struct.unpack_from("<IIQQQQQQ", elf, headers + n * header_size)
                          for n in range(header_count)]
        self._sections = [struct.unpack_from("<IIQQQQIIQQ", elf, sections + n * section_size)
                          for n in range(section_count)]
        self._load()
        self._read_symbols()
        self._relocate()
        metadata = self._read_metadata()
        self.program = {}  # an emulator's decoded instructions by address; it may alter the image
        self.kernels = {k[".symbol"][:-3]: k for k in metadata.get("amdhsa.kernels", [])}

    def _load(self):
        loads = [s for s in self._segments if s[0] == PT_LOAD]
        if not loads:
            raise Refused("no PT_LOAD segment: a relocatable object must be linked first")
        size = max(s[3] + s[6] for s in loads)
        # Fetching runs ahead: a page of zeros follows the code.
        self.image = mmap.mmap(-1, (size + 8192) // 4096 * 4096)
        for s in loads:
            self.image[s[3]:s[3] + s[5]] = self.elf[s[2]:s[2] + s[5]]
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.image))

    def _string(self, offset):
        return self.elf[offset:self.elf.index(b"\0", offset)].decode()

    def _read_symbols(self):
        self.symbols, self._tables = {}, {}
        for number, section in enumerate(self._sections):
            if section[1] not in (SHT_SYMTAB, SHT_DYNSYM):
                continue
            table = self._tables[number] = []
            names = self._sections[section[6]][4]
            for offset in range(section[4], section[4] + section[5], 24):
                name, _, _, index, value, _ = struct.unpack_from("<IBBHQQ", self.elf, offset)
                table.append((self._string(names + name), index, value))
                if name and index:
                    self.symbols[table[-1][0]] = value

    def _relocate(self):
        for section in self._sections:
            if section[1] != SHT_RELA:
                continue
            for entry in range(section[4], section[4] + section[5], 24):
                offset, info, addend = struct.unpack_from("<QQq", self.elf, entry)
                self._relocate_one(self._tables.get(section[6]), offset, info, addend)

    def _relocate_one(self, table, offset, info, addend):
        kind = info & 0xFFFFFFFF
        name, index, value = table[info >> 32] if info >> 32 else ("", 1, 0)
        if info >> 32 and not index:
            raise Refused(f"undefined symbol {name}")
        absolute = self.base + value + addend
        relative = value + addend - offset
        if kind in (3, 13):  # ABS64, RELATIVE64
            self.image[offset:offset + 8] = struct.pack("<Q", absolute)
        elif kind == 5:  # REL64
            self.image[offset:offset + 8] = struct.pack("<q", relative)
        elif kind == 4:  # REL32
            self.image[offset:offset + 4] = struct.pack("<i", relative)
        elif kind in (10, 11):  # REL32_LO, REL32_HI
            word = (relative >> (32 * (kind - 10))) & 0xFFFFFFFF
            self.image[offset:offset + 4] = struct.pack("<I", word)
        elif kind:
            raise Refused(f"relocation type {kind} against {name!r}")

    def _read_metadata(self):
        for segment in self._segments:
            if segment[0] != PT_NOTE:
                continue
            at = segment[2]
            while at < segment[2] + segment[5]:
                name_size, size, kind = struct.unpack_from("<III", self.elf, at)
                at += 12
                name = self.elf[at:at + name_size].rstrip(b"\0")
                at += (name_size + 3) & ~3
                if kind == NT_AMDGPU_METADATA and name == b"AMDGPU":
                    return read_msgpack(self.elf[at:at + size])[0]
                at += (size + 3) & ~3
        return {}

    def find(self, parts):
        """The name of the kernel whose mangled name contains every part."""
        hits = [name for name in self.kernels if all(part in name for part in parts)]
        if len(hits) != 1:
            raise Refused(f"{len(hits)} kernels contain {parts}: {hits or sorted(self.kernels)}")
        return hits[0]

    def descriptor(self, name):
        """The kernel descriptor (amdhsa) by field."""
        at = self.symbols[name + ".kd"]
        lds, private, arguments = struct.unpack_from("<III", self.image, at)
        entry, = struct.unpack_from("<q", self.image, at + 16)
        _, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", self.image, at + 44)
        return {"lds": lds, "private": private, "arguments": arguments, "entry": at + entry,
                "rsrc1": rsrc1, "rsrc2": rsrc2, "properties": properties, "preload": preload}
