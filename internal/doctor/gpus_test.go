package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	someGPUs = "0, GPU-5c2a1d0e-77a1-4f0b-9c31-0d0f6a3f1b11, NVIDIA H100 80GB HBM3, 81559, 61043\n" +
		"1, GPU-aa0e94c2-1b6d-4d0e-8e5b-2f6f7a9a2c22, NVIDIA H100 80GB HBM3, 81559, 4\n"
	someApps = "GPU-5c2a1d0e-77a1-4f0b-9c31-0d0f6a3f1b11, 217, 60034, /opt/conda/bin/python3.11\n" +
		"GPU-5c2a1d0e-77a1-4f0b-9c31-0d0f6a3f1b11, 9999, 1000, tritonserver, --model-store=/a, b\n" +
		"GPU-aa0e94c2-1b6d-4d0e-8e5b-2f6f7a9a2c22, 218, [N/A], [Not Found]\n"
)

func TestProcessesOfGPUs(t *testing.T) {
	proc := t.TempDir()
	for pid, line := range map[string]string{"217": "python3\x00train.py\x00--lr\x001e-4\x00", "218": "bash\x00"} {
		if err := os.MkdirAll(filepath.Join(proc, pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "cmdline"), []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gpus, err := parseGPUs([]byte(someGPUs))
	if err != nil {
		t.Fatal(err)
	}
	if err := addProcesses(gpus, []byte(someApps), proc); err != nil {
		t.Fatal(err)
	}
	mib := func(n int64) *int64 { n <<= 20; return &n }
	want := []gpu{
		{0, "NVIDIA H100 80GB HBM3", "GPU-5c2a1d0e-77a1-4f0b-9c31-0d0f6a3f1b11", 81559 << 20, 61043 << 20, []gpuProcess{
			{217, "python3 train.py --lr 1e-4", mib(60034), true},
			{9999, "tritonserver, --model-store=/a, b", mib(1000), false},
		}},
		{1, "NVIDIA H100 80GB HBM3", "GPU-aa0e94c2-1b6d-4d0e-8e5b-2f6f7a9a2c22", 81559 << 20, 4 << 20, []gpuProcess{
			{218, "[Not Found]", nil, false}, // the id is the host's, and here another process has it
		}},
	}
	if diff := cmp.Diff(want, gpus); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var b strings.Builder
	writeGPUs(&b, gpus, nil)
	for _, want := range []string{ // how to end each is offered, where it is
		"    process 217, 58.6GiB: python3 train.py --lr 1e-4; to end it: kill 217, and kill -9 217 if it is there after 10 s\n",
		"    process 9999, 1000MiB: tritonserver, --model-store=/a, b (not visible from here: another container's or another " +
			"user's; to end it, kill 9999 there, once ps -p 9999 shows it)\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s\nwithout\n%s", b.String(), want)
		}
	}
}

func TestGPUsThatDoNotTell(t *testing.T) {
	for name, test := range map[string]struct{ out, err string }{
		"no memory":  {"0, GPU-1, Orin (nvgpu), [N/A], [N/A]\n", ""},
		"none":       {"No devices were found\n", ""},
		"a new form": {"0; GPU-1\n", "has 1 fields, want 5"},
		"bad index":  {"x, GPU-1, A, 1, 2\n", `index "x"`},
	} {
		gpus, err := parseGPUs([]byte(test.out))
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", name, err, test.err)
		}
		for _, g := range gpus {
			if g.Total != 0 || g.Used != 0 {
				t.Errorf("%s: %+v, want no sizes", name, g)
			}
		}
	}
}
