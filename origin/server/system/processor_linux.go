package system

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of processor time in /proc, on every architecture of Linux that Go supports.
const tick = 10 * time.Millisecond

// processTime returns the processor time that a process has used. known is false if it cannot be read.
func processTime(pid int) (spent time.Duration, known bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, text, _ = bytes.Cut(text, []byte(") ")) // after the name of the program
	f := bytes.Fields(text)
	if len(f) < 13 {
		return 0, false
	}
	for _, field := range f[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, false
		}
		spent += time.Duration(n) * tick
	}
	return spent, true
}

// MemoryAvailable returns the number of bytes that new programs can use without swapping: of the machine, and of the control group. If neither
// is known, it returns 0.
func MemoryAvailable() int64 {
	available := memoryField("MemAvailable:")
	limit, used := cgroupBytes("memory.max"), cgroupBytes("memory.current")
	if limit > 0 && used > 0 {
		available = min(available, max(limit-used, 0))
	}
	return available
}

// memoryField returns a value of /proc/meminfo in bytes, or 0 if it is missing.
func memoryField(name string) int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) > 1 && string(f[0]) == name {
			kB, _ := strconv.ParseInt(string(f[1]), 10, 64) // 0 if it is not a number
			return kB << 10
		}
	}
	return 0
}

// cgroupBytes returns a number of this process's control group, or 0 if there is none or no limit.
func cgroupBytes(name string) int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/" + name)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64) // 0 for "max"
	return n
}
