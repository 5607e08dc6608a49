package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sightline-dev/sightline/core/cpu"
)

// family is a kernel family: a value of SIGHTLINE_CPU.
type family struct {
	level cpu.Level // level that it forces
	debug string    // setting of GODEBUG that forces it
	title string
}

var families = map[string]family{
	"avx512": {cpu.AVX512VNNI, "", "AVX-512 VNNI"},
	"avx2":   {cpu.AVX2, "cpu.avx512f=off", "AVX2"},
	"plain":  {cpu.Generic, "cpu.avx2=off", "plain Go"},
}

// level returns the highest level that the kernels of this process may use.
func level() cpu.Level {
	l := cpu.Lent - 1
	for !cpu.Has(l) {
		l--
	}
	return l
}

// force starts this program again with the kernels of a family; "" means the best one. Every package chooses its kernels when a
// program starts, from the features that golang.org/x/sys/cpu finds. GODEBUG disables features there, also in the servers that this
// program starts.
func force(name string) error {
	f, ok := families[name]
	switch {
	case name == "":
		return nil
	case !ok:
		return fmt.Errorf("SIGHTLINE_CPU is %q, want avx512, avx2 or plain", name)
	case level() == f.level:
		return nil
	case level() < f.level, f.debug == "", isForced(f):
		return fmt.Errorf("SIGHTLINE_CPU is %q, but this program uses %v", name, level())
	}
	debug := f.debug
	if was := os.Getenv("GODEBUG"); was != "" {
		debug += "," + was
	}
	if err := os.Setenv("GODEBUG", debug); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, os.Environ())
}

// isForced reports whether this program was started again for a family.
func isForced(f family) bool {
	return f.debug != "" && strings.Contains(os.Getenv("GODEBUG"), f.debug)
}

// mask hides the instructions after AVX2 from the peers if this program was started again without them: it compiles a library into dir that
// every later peer loads. It needs gcc, and a processor that can fault on CPUID. Otherwise the peers use all instructions.
func mask(dir string) error {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !isForced(families["avx2"]) || !strings.Contains(string(info), "cpuid_fault") {
		return err
	}
	library := filepath.Join(dir, "mask.so")
	if text, err := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-o", library, "models/compare/mask/cpuid.c").CombinedOutput(); err != nil {
		return missing(fmt.Sprintf("gcc is needed to hide instructions from the peers: %v %.200s", err, text))
	}
	masked = []string{"LD_PRELOAD=" + library, "NODE_OPTIONS=--disable-wasm-trap-handler"} // Node would replace the library's handler
	return nil
}

// masked is the environment that hides the instructions after AVX2 from peers; nil: the peers see all instructions.
var masked []string

// kernels returns the family of the level, as the table names it.
func kernels() string {
	for _, f := range families {
		switch {
		case f.level != level():
		case isForced(f) && masked != nil:
			return f.title + ", both sides forced"
		case isForced(f):
			return f.title + ", forced"
		default:
			return f.title
		}
	}
	return level().String()
}

// processor returns a description of the machine in a sentence, and a short one.
func processor() (sentence, short string, err error) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", "", err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	var features []string
	for _, f := range strings.Fields(fields["flags"]) {
		for _, prefix := range []string{"avx", "fma", "bmi", "f16c", "amx"} {
			if strings.HasPrefix(f, prefix) {
				features = append(features, f)
			}
		}
	}
	short = fmt.Sprintf("%s %s/%s", fields["model name"], fields["cpu family"], fields["model"])
	return fmt.Sprintf("%s, family %s, model %s, %d cores, %s of cache; %s. Kernels: %s.", fields["model name"], fields["cpu family"],
		fields["model"], runtime.NumCPU(), fields["cache size"], strings.Join(features, " "), kernels()), short, nil
}
