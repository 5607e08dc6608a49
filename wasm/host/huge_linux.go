package host

import (
	"bufio"
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page in bytes.
const hugePage = 2 << 20

// hugeMemory asks the system to use huge pages for an instance's memory when the guest first touches it. A system without huge pages uses
// small ones.
func hugeMemory(all []byte) { _ = unix.Madvise(all, unix.MADV_HUGEPAGE) }

// hugeCode asks the system to move the compiled code of modules into huge pages. Ours is about 60 MB, of which a request runs a few
// hundred KB in many places. With pages of 4 KB the processor looks up most of their addresses again each time. On a system without such
// pages, the code stays where it is.
//
// wazero does not reveal the addresses of its code, but nothing else in the process makes executable memory without a file.
func hugeCode() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		lo, hi, ok := codeIn(lines.Text())
		if lo, hi = (lo+hugePage-1)&^(hugePage-1), hi&^(hugePage-1); !ok || lo >= hi {
			continue
		}
		for _, advice := range []uintptr{unix.MADV_HUGEPAGE, unix.MADV_COLLAPSE} { // HUGEPAGE works gradually, COLLAPSE at once
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, lo, hi-lo, advice)
		}
	}
}

// codeIn returns the range of a line of /proc/self/maps. ok reports whether the range has code that belongs to no file.
func codeIn(line string) (lo, hi uintptr, ok bool) {
	var rights, offset, device, node, name string
	n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s %s", &lo, &hi, &rights, &offset, &device, &node, &name)
	return lo, hi, n == 6 && node == "0" && len(rights) == 4 && rights[2] == 'x'
}
