package resident

import "testing"

func TestDropProgram(t *testing.T) {
	before := Listed("/proc/self/status", "RssFile:")
	if before == 0 {
		t.Skip("this kernel does not say which pages are those of files")
	}
	DropProgram()
	if after := Listed("/proc/self/status", "RssFile:"); after >= before {
		t.Errorf("%d bytes of files before, %d after", before, after)
	}
}
