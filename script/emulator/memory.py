"""Device memory for an emulator that runs in this process."""
import ctypes
import mmap

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


class Memory:
    """A 16-byte aligned buffer between two unmapped pages: it ends at the second one (up to
    alignment), so that an overrun faults instead of passing unseen. The first page, too, is not
    accessible."""

    def __init__(self, data):
        self.size = len(data)
        padded = (self.size + 15) // 16 * 16
        usable = (padded + PAGE - 1) // PAGE * PAGE
        self._pages = mmap.mmap(-1, usable + 2 * PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self.address = base + PAGE + usable - padded
        ctypes.memset(base, 0xFF, usable + PAGE)
        ctypes.memmove(self.address, bytes(data), self.size)
        for guard in (base, base + PAGE + usable):
            if _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(PAGE), 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect of a guard page")

    def read(self):
        return ctypes.string_at(self.address, self.size)
