package resident

import "testing"

func TestDropProgram(t *testing.T) {
	before := statusBytes("RssFile:")
	if before == 0 {
		t.Skip("this kernel does not say which pages are those of files")
	}
	DropProgram()
	if after := statusBytes("RssFile:"); after >= before {
		t.Errorf("%d bytes of files before, %d after", before, after)
	}
}
