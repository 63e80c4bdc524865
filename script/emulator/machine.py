"""Runs a kernel of a CDNA code object on tinygrad's instruction-level emulator (test/mockgpu/amd/emu.py
in a checkout of https://github.com/tinygrad/tinygrad), which shares no code with this project.

Where that emulator is known to differ from hardware, it is mended here from outside, or the
instruction is refused:

  mfma32    32x32 MFMA results lie in other rows than on hardware (16 g + r instead of
            8 (r / 4) + 4 g + r % 4 for lanes 32 g and up, register r): A's rows go in permuted
  mfma_acc  MFMA reads A and B from VGPRs even if the encoding says AGPRs: they are copied
  lds_acc   LDS writes take their data from VGPRs even if the encoding says AGPRs: likewise
  half_reg  16-bit instructions take VGPRs from 128 on for the high halves of the lower 128 (as later
            architectures do): they are run on copies in lower registers
  bf16_1k   gfx90a's opcodes of the bf16_1k MFMAs are other instructions on gfx942, which it decodes
  dpp       DPP whose destination is its source reads lanes already written: run from a copy
  acc908    gfx908 has no bit that says that C and D are AGPRs (they always are)
  narrow    buffer loads and stores of 8, 16 and 96 bits: computed here

fp16 MFMAs take subnormal inputs as zero there, on every architecture. So do gfx90a's matrix cores;
those of gfx942 compute with them.
"""
import collections
import ctypes
import os
import re
import struct
import sys
import time

from .code_object import Refused
from .memory import Memory

LANES = 64
EXEC = 126
INEXACT = {"v_cvt_pkrtz_f16_f32": "this emulator rounds to nearest even, hardware toward zero"}
LDS_LIMIT = {"gfx950": 160 * 1024}
Statistics = collections.namedtuple("Statistics", "instructions seconds compiling mended")


def refusal(name, instruction):
    """Why this instruction cannot be trusted in the emulator, or None."""
    if name.startswith("buffer_"):
        if "atomic" in name:
            return "executed as a plain load"
        if not re.search(r"(load|store)_dword(x2|x4)?$", name):
            return "executed as a load or store of 32 bits"
    if "mfma" in name or "smfmac" in name:
        shape = re.search(r"_(\d+)x(\d+)x(\d+)(_\d+b)?", name)
        if "smfmac" in name:
            return "not computed as such"
        if "f64" in name or "xf32" in name:
            return "not computed as such"
        if shape and shape.group(1) != "4" and shape.group(4):
            return "several blocks are computed as one"
        if "scale" not in name and "f8f6f4" not in name and any(
                getattr(instruction, field, 0) for field in ("cbsz", "abid", "blgp")):
            return "cbsz, abid and blgp are ignored"
    return None


def lane_ids(arch, wave, block):
    """Initial v0, v1, v2 of each lane, and the execution mask."""
    count = block[0] * block[1] * block[2]
    registers = [[0] * LANES for _ in range(3)]
    mask = 0
    for lane in range(LANES):
        thread = wave * LANES + lane
        mask |= (thread < count) << lane
        x = thread % block[0]
        y = thread // block[0] % block[1]
        z = thread // (block[0] * block[1])
        if arch == "gfx908":
            registers[0][lane], registers[1][lane], registers[2][lane] = x, y, z
        else:
            registers[0][lane] = x | y << 10 | z << 20
    return registers, mask


def user_registers(kernel, argument_address, argument_bytes, packet_address):
    """Initial scalar registers before the workgroup's number, as the descriptor asks for them."""
    properties, registers = kernel["properties"], []

    def pair(value):
        return [value & 0xFFFFFFFF, value >> 32]

    if properties & 1:
        registers += [0, 0, 0, 0]  # resource of private memory, which is refused
    if properties & 2:
        registers += pair(packet_address)
    if properties & 4:
        registers += [0, 0]
    if properties & 8:
        registers += pair(argument_address)
    if properties & 16:
        registers += [0, 0]
    if properties & 32:
        registers += [0, 0]
    if properties & 64:
        registers += [0]
    count, first = kernel["preload"] & 0x7F, kernel["preload"] >> 7
    words = struct.unpack_from(f"<{count}I", argument_bytes, first * 4) if count else ()
    registers += words
    wanted = kernel["rsrc2"] >> 1 & 31
    return registers + [0] * (wanted - len(registers))


class NarrowAccess:
    """A buffer load or store of 8, 16 or 96 bits (MUBUF, raw buffer), executed on the registers."""
    # opcode: (bytes, store?, signed?, half of the register: None = all of it)
    OPCODES = {16: (1, False, False, None), 17: (1, False, True, None),
               18: (2, False, False, None), 19: (2, False, True, None),
               22: (12, False, False, None), 24: (1, True, False, 0), 25: (1, True, False, 1),
               26: (2, True, False, 0), 27: (2, True, False, 1), 30: (12, True, False, None),
               32: (1, False, False, 0), 33: (1, False, False, 1),
               34: (1, False, True, 0), 35: (1, False, True, 1),
               36: (2, False, False, 0), 37: (2, False, False, 1)}

    @staticmethod
    def opcode(word):
        """The opcode if this is the first word of such an instruction, else None."""
        code = word >> 18 & 0x7F
        return code if word >> 26 == 0x38 and code in NarrowAccess.OPCODES else None

    def __init__(self, word, second, pc_index):
        self.size, self.store, self.signed, self.half = self.OPCODES[self.opcode(word)]
        self.constant = word & 0xFFF
        self.offset_register = second & 0xFF if word >> 12 & 1 else None
        self.data = second >> 8 & 0xFF
        self.resource = (second >> 16 & 0x1F) * 4
        self.in_acc = bool(second >> 23 & 1)
        self.scalar_offset = second >> 24
        self.pc_index = pc_index
        if word >> 13 & 1 or word >> 16 & 1:
            raise Refused("buffer access with an index, or into LDS")

    def __call__(self, buffers):
        scalar = (ctypes.c_uint32 * 260).from_address(buffers[0].value)
        vector = (ctypes.c_uint32 * (256 * LANES)).from_address(buffers[1].value)
        file = buffers[5] if self.in_acc else buffers[1]
        data = (ctypes.c_uint32 * (256 * LANES)).from_address(file.value)
        if scalar[self.resource + 1] >> 16:
            raise Refused("buffer resource with a stride or swizzle")
        base = scalar[self.resource] | (scalar[self.resource + 1] & 0xFFFF) << 32
        scalar_offset = scalar[self.scalar_offset]
        end = scalar[self.resource + 2] - scalar_offset
        mask = scalar[EXEC] | scalar[EXEC + 1] << 32
        for lane in range(LANES):
            if not mask >> lane & 1:
                continue
            offset = self.constant
            if self.offset_register is not None:
                offset += vector[self.offset_register * LANES + lane]
            self.access(data, lane, base + scalar_offset, offset, end)
        pc = (scalar[self.pc_index] | scalar[self.pc_index + 1] << 32) + 8
        scalar[self.pc_index], scalar[self.pc_index + 1] = pc & 0xFFFFFFFF, pc >> 32

    def access(self, data, lane, base, offset, end):
        """One lane. Out of range: loads give 0, stores are dropped; 96 bits word by word."""
        for word in range(3 if self.size == 12 else 1):
            at = (self.data + word) * LANES + lane
            place = offset + 4 * word
            bytes_here = min(self.size, 4)
            if self.store:
                if place < end:
                    value = data[at] >> (16 if self.half else 0)
                    ctypes.memmove(base + place, value.to_bytes(4, "little"), bytes_here)
                continue
            raw = ctypes.string_at(base + place, bytes_here) if place < end else bytes(bytes_here)
            value = int.from_bytes(raw, "little", signed=self.signed)
            if self.half is None:
                data[at] = value & 0xFFFFFFFF
            elif self.half == 0:
                data[at] = data[at] & 0xFFFF0000 | value & 0xFFFF
            else:
                data[at] = data[at] & 0xFFFF | (value & 0xFFFF) << 16


class Machine:
    """tinygrad's emulator, mended. `limit`: instructions of a launch."""

    def __init__(self, tinygrad, limit=500_000_000):
        if not os.path.isfile(os.path.join(tinygrad, "test/mockgpu/amd/emu.py")):
            raise Refused(f"{tinygrad} is not a checkout of tinygrad: no test/mockgpu/amd/emu.py")
        sys.path.insert(0, tinygrad)
        os.environ.setdefault("DEV", "CPU")
        import test.mockgpu.amd.emu as emu  # pylint: disable=import-outside-toplevel
        self.emu = emu
        self.limit = limit
        self.noted = set()
        self.mended = collections.Counter()

    def launch(self, code, name, arguments, grid, block):
        """Runs every workgroup of the grid, one after the other; a Statistics."""
        kernel = code.descriptor(name)
        if kernel["private"]:
            raise Refused(f"{name}: {kernel['private']} bytes of private memory (scratch)")
        if kernel["lds"] > LDS_LIMIT.get(code.arch, 64 * 1024):
            raise Refused(f"{name}: {kernel['lds']} bytes of LDS are more than {code.arch} has")
        memory = Memory(arguments)
        threads = [a * b for a, b in zip(grid, block)]
        packet = Memory(struct.pack("<HHHHHHIIIIIQQ", 2, 3, *block, 0, *threads, 0, kernel["lds"], 0,
                                    memory.address) + bytes(16))
        scalars = user_registers(kernel, memory.address, bytes(arguments), packet.address)
        self.mended.clear()
        run = _Run(self, code, kernel, scalars, block)
        start = time.time()
        for z in range(grid[2]):
            for y in range(grid[1]):
                for x in range(grid[0]):
                    run.workgroup((x, y, z))
        return Statistics(run.instructions, time.time() - start, run.compiling, dict(self.mended))

    def decode(self, pc, code):
        """(function of the wave's buffers, is it a barrier?) for the instruction at pc."""
        word = ctypes.c_uint32.from_address(pc)
        second = ctypes.c_uint32.from_address(pc + 4)
        self._mend_opcode(word, code.arch)
        if NarrowAccess.opcode(word.value) is not None:
            self.mended["narrow"] += 1
            return NarrowAccess(word.value, second.value, self.emu.PC_LO_IDX), False
        (program, runtime), instruction = self.emu._decode_at(pc, "cdna")
        operation = instruction.op
        name = operation.name.lower() if hasattr(operation, "name") else str(operation)
        name = re.sub(r"_e(32|64)$", "", name)
        self._judge(name, instruction, word.value, second.value)
        function = self._callable(program, runtime)
        if "mfma" in name:
            function = self._mend_mfma(name, instruction, second.value, function)
        elif name.startswith("ds_") and word.value >> 25 & 1:
            function = self._mend_lds_store(pc, word, second, name, function)
        elif re.search(r"[fiub]16", name) and self._high_fields(word.value):
            function = self._mend_half_registers(pc, word)
        elif "DPP" in type(instruction).__name__ and hasattr(instruction, "vdst"):
            if second.value & 0xFF == instruction.vdst.offset - 256:
                function = self._mend_dpp(pc, second)
        return function, name == "s_barrier"

    @staticmethod
    def _callable(program, runtime):
        function, used = runtime.fxn, list(program.arg.globals)
        return lambda buffers: function(*[buffers[n] for n in used])

    def _mend_opcode(self, word, arch):
        if word.value & 0xFF800000 != 0xD3800000:  # VOP3P-MAI
            return
        opcode = word.value >> 16 & 0x7F
        if arch == "gfx90a" and 0x63 <= opcode <= 0x67:
            word.value -= 6 << 16
            self.mended["bf16_1k"] += 1
        if arch == "gfx908" and opcode in (0x68, 0x69, 0x6B, 0x6C, 0x6D):
            raise Refused("gfx908's bf16 MFMA: another instruction on gfx942, which is decoded")
        if arch == "gfx908" and opcode >= 0x40 and opcode not in (0x58, 0x59):
            word.value |= 0x8000
            self.mended["acc908"] += 1

    def _judge(self, name, instruction, word, second):
        if word >> 23 == 0x17D and word & 0xFF in range(0xEB, 0xEF):
            raise Refused(f"{name}: generic pointers to LDS or private memory")
        if "DPP" in type(instruction).__name__ and second >> 8 & 0x1FF in (0x142, 0x143):
            raise Refused(f"{name}: DPP row_bcast is taken for another pattern")
        why = refusal(name, instruction)
        if why:
            raise Refused(f"{name}: {why}")
        if name in INEXACT and name not in self.noted:
            self.noted.add(name)
            print(f"note: {name}: {INEXACT[name]}", file=sys.stderr)

    def _mend_mfma(self, name, instruction, second, function):
        for operand, source in ((0, second & 0x1FF), (1, second >> 9 & 0x1FF)):
            permuted = operand == 0 and "_32x32x" in name
            in_acc = bool(second >> (27 + operand) & 1)
            if not permuted and not in_acc:
                continue
            if source < 256:
                raise Refused(f"{name}: constant as operand A or B")
            self.mended["mfma32" if permuted else "mfma_acc"] += 1
            count = (instruction.src0 if operand == 0 else instruction.src1).sz
            function = self._staged(function, source - 256, count, in_acc, permuted)
        return function

    @staticmethod
    def _staged(inner, register, count, in_acc, permuted):
        """inner() with VGPRs register.. replaced: taken from AGPRs, A's rows in the emulator's
        order. Afterwards they are put back, but for those that the instruction itself wrote."""
        size = 4 * LANES
        rows = [8 * (r % 16 // 4) + 4 * (r // 16) + r % 4 for r in range(32)]
        order = [k * LANES + (lane & 32) + rows[lane & 31]
                 for k in range(count) for lane in range(LANES)]
        layout = struct.Struct(f"<{count * LANES}I")

        def run(buffers):
            at = buffers[1].value + register * size
            before = ctypes.string_at(at, count * size)
            source = (ctypes.string_at(buffers[5].value + register * size, count * size)
                      if in_acc else before)
            if permuted:
                words = layout.unpack(source)
                source = layout.pack(*[words[n] for n in order])
            ctypes.memmove(at, source, count * size)
            inner(buffers)
            after = ctypes.string_at(at, count * size)
            for k in range(count):
                part = slice(k * size, (k + 1) * size)
                if after[part] == source[part]:
                    ctypes.memmove(at + k * size, before[part], size)
        return run

    def _mend_lds_store(self, pc, word, second, name, function):
        if name.startswith("ds_read"):
            return function
        if not name.startswith("ds_write"):
            raise Refused(f"{name}: AGPRs are read as VGPRs")
        address = second.value & 0xFF
        blocks = [n for n in (0, 4, 8) if not n <= address < n + 4]
        moves = []
        for bit, block in zip((8, 16), blocks):
            register = second.value >> bit & 0xFF
            second.value ^= (register ^ block) << bit
            moves.append((register, block, min(4, 256 - register) * 4 * LANES))
        word.value &= ~(1 << 25)
        self.mended["lds_acc"] += 1
        (program, runtime), _ = self.emu._decode_at(pc, "cdna")
        inner = self._callable(program, runtime)

        def run(buffers):
            vector, acc = buffers[1].value, buffers[5].value
            saved = ctypes.string_at(vector, 12 * 4 * LANES)
            for register, block, size in moves:
                ctypes.memmove(vector + block * 4 * LANES, acc + register * 4 * LANES, size)
            inner(buffers)
            ctypes.memmove(vector, saved, len(saved))
        return run

    @staticmethod
    def _high_fields(word):
        """Where a VOP1, VOP2 or VOPC instruction names VGPRs from 128 on: [(bit position, VGPR)]."""
        if word >> 31:
            return []
        source, first, second = word & 0x1FF, word >> 9 & 0xFF, word >> 17 & 0xFF
        if source == 0xF9:  # SDWA: read as on hardware
            return []
        kind = word >> 25
        fields = [(0, source - 256)] if source >= 256 else []
        if kind != 0x3F:  # VOP1 has its opcode there
            fields.append((9, first))
        if kind != 0x3E:  # VOPC has its opcode there
            fields.append((17, second))
        return [field for field in fields if field[1] >= 128]

    def _mend_half_registers(self, pc, word):
        low = {word.value & 0xFF, word.value >> 9 & 0xFF, word.value >> 17 & 0xFF}
        free = [n for n in range(128) if n not in low]
        spare = {}
        for bit, register in self._high_fields(word.value):
            spare.setdefault(register, free[len(spare)])
            word.value ^= (register ^ spare[register]) << bit
        self.mended["half_reg"] += 1
        (program, runtime), _ = self.emu._decode_at(pc, "cdna")
        inner = self._callable(program, runtime)
        size = 4 * LANES

        def run(buffers):
            registers = buffers[1].value
            saved = {n: ctypes.string_at(registers + n * size, size) for n in spare.values()}
            for register, n in spare.items():
                ctypes.memmove(registers + n * size, registers + register * size, size)
            inner(buffers)
            for register, n in spare.items():
                ctypes.memmove(registers + register * size, registers + n * size, size)
                ctypes.memmove(registers + n * size, saved[n], size)
        return run

    def _mend_dpp(self, pc, second):
        source = second.value & 0xFF
        self.mended["dpp"] += 1
        second.value |= 0xFF  # reads v255, which gets a copy for the time of the instruction
        (program, runtime), _ = self.emu._decode_at(pc, "cdna")
        inner = self._callable(program, runtime)
        size = 4 * LANES

        def run(buffers):
            registers = buffers[1].value
            spare = ctypes.string_at(registers + 255 * size, size)
            ctypes.memmove(registers + 255 * size, registers + source * size, size)
            inner(buffers)
            ctypes.memmove(registers + 255 * size, spare, size)
        return run


class _Run:
    """The state of one launch."""
    POISON = 0xFF  # bytes of LDS and vector registers at the start: NaN in every type

    def __init__(self, machine, code, kernel, scalars, block):
        self.machine, self.code, self.kernel = machine, code, kernel
        self.scalars, self.block = scalars, block
        emu = machine.emu
        everything = emu.BufferSpec(external_ptr=0)
        self.memory = emu.Buffer("CPU", 1 << 40, emu.dtypes.uint32,
                                 options=everything).ensure_allocated()
        self.lds = ctypes.create_string_buffer(max(kernel["lds"], 4) + 65536)
        self.private = ctypes.create_string_buffer(64)
        self.program = code.program
        self.instructions = 0
        self.compiling = 0.0

    def workgroup(self, place):
        ctypes.memset(self.lds, self.POISON, len(self.lds))
        threads = self.block[0] * self.block[1] * self.block[2]
        waves = [self._start(wave, place) for wave in range((threads + LANES - 1) // LANES)]
        while waves:  # each runs to its next barrier
            waves = [wave for wave in waves if self._run_to_barrier(*wave)]

    def _start(self, wave, place):
        emu, kernel = self.machine.emu, self.kernel
        state = emu.WaveState(LANES, LANES)
        registers, mask = lane_ids(self.code.arch, wave, self.block)
        for file in (state.vgpr_buf, state.accvgpr_buf):
            ctypes.memset(file._buf.va_addr, self.POISON, 256 * LANES * 4)
        for number, values in enumerate(registers if self.code.arch == "gfx908" else registers[:1]):
            for lane, value in enumerate(values):
                state._write_vgpr(number, lane, value)
        state._write_sgpr(EXEC, mask & 0xFFFFFFFF)
        state._write_sgpr(EXEC + 1, mask >> 32)
        scalars = list(self.scalars)
        scalars += [place[axis] for axis in range(3) if kernel["rsrc2"] >> (7 + axis) & 1]
        for number, value in enumerate(scalars):
            state._write_sgpr(number, value)
        state._write_sgpr(emu.SCRATCH_STRIDE_IDX, 0)
        state.pc = self.code.base + kernel["entry"]
        addresses = (state.sgpr_buf._buf.va_addr, state.vgpr_buf._buf.va_addr,
                     self.memory._buf.va_addr, ctypes.addressof(self.lds),
                     ctypes.addressof(self.private), state.accvgpr_buf._buf.va_addr)
        return state, [ctypes.c_uint64(address) for address in addresses]

    def _run_to_barrier(self, state, buffers):
        """False if the wave has ended."""
        end = self.machine.emu.ENDPGM_PC
        program = self.program
        while True:
            pc = state.pc
            if pc == end:
                return False
            entry = program.get(pc) or self._decode(pc)
            entry[0](buffers)
            self.instructions += 1
            if self.instructions > self.machine.limit:
                raise Refused(f"more than {self.machine.limit} instructions")
            if entry[1]:
                return True

    def _decode(self, pc):
        start = time.time()
        try:
            entry = self.program[pc] = self.machine.decode(pc, self.code)
        except Refused as reason:
            raise Refused(f"at {pc - self.code.base:#x}: {reason}") from None
        except Exception as reason:
            raise Refused(f"at {pc - self.code.base:#x}: {type(reason).__name__}: {reason}") from reason
        self.compiling += time.time() - start
        return entry
