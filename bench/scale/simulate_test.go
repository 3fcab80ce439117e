package main

import (
	"math"
	"testing"
)

// TestSimulate compares the simulation with what arithmetic says where that can, and failures with
// their absence.
func TestSimulate(t *testing.T) {
	s := defaults()
	s.partitions, s.nodes, s.textBytes, s.tokens = 400, 20, 1e12, 0.25e12
	s.uptimeHours, s.slowShare, s.stragglerFactor = math.Inf(1), 0, 0
	calm := simulate(s)
	want := s.textBytes / (s.bytesPerCore * float64(s.cores*s.nodes)) / 3600
	if math.Abs(calm.buildHours-want) > 1e-6 || calm.preempted != 0 || calm.lostHours != 0 {
		t.Errorf("without failures: %+v, want %f hours", calm, want)
	}
	s.uptimeHours = 2 * want
	rough := simulate(s)
	if rough.preempted == 0 || rough.buildHours <= calm.buildHours {
		t.Errorf("with failures: %+v", rough)
	}
	s.resumes = false
	if again := simulate(s); again.lostHours <= rough.lostHours {
		t.Errorf("without checkpoints %f node-hours are lost, with them %f", again.lostHours, rough.lostHours)
	}
	s.resumes, s.uptimeHours, s.slowShare, s.slowFactor = true, math.Inf(1), 0.2, 20
	alone := simulate(s)
	s.stragglerFactor = 2
	if twice := simulate(s); twice.twins == 0 || twice.buildHours > alone.buildHours {
		t.Errorf("second attempts: %+v, without: %+v", twice, alone)
	}
	s.storeBytes = 1e9
	if slow := simulate(s); !slow.store || slow.buildHours < alone.buildHours {
		t.Errorf("slow storage: %+v", slow)
	}
}

// TestMetadata checks that the metadata of 10 million shards stay below 1 GB.
func TestMetadata(t *testing.T) {
	if n := (result{shards: 1e7}).metadataBytes(); n > 1e9 || n < 9e8 {
		t.Errorf("10 million shards: %.0f bytes", n)
	}
	s := defaults()
	s.partitions, s.nodes = 400, 400
	one, several := s, s
	one.planOneCore = true
	if a, b := simulate(one).planHours, simulate(several).planHours; a <= b || b < s.textBytes/s.planBytes/3600 {
		t.Errorf("a plan takes %f h on a core, %f h on several", a, b)
	}
}
