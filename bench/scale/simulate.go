// Command scale simulates a build in partitions on many preemptible nodes, and measures merges of
// very many shards.
//
//	go run ./bench/scale simulate                       # 60 TB of text on 1,000 nodes
//	go run ./bench/scale simulate -partitions 2000      # what large partitions cost
//	go run ./bench/scale merge -dir DIR -parts 10000 -shards 1000
//	go run ./bench/scale read -dir DIR                   # what merge left
package main

import (
	"cmp"
	"container/heap"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: scale simulate|merge|read [flags]; -h lists them")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "simulate":
		err = simulateCommand(os.Args[2:], os.Stdout)
	case "merge":
		err = mergeCommand(os.Args[2:], os.Stdout)
	case "read":
		err = readCommand(os.Args[2:], os.Stdout)
	default:
		err = fmt.Errorf("no command %q: simulate, merge or read", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// A scenario is a build and the machines for it. docs/scale.md says where its rates were measured.
type scenario struct {
	textBytes, tokens float64
	partitions, nodes int
	cores             int
	bytesPerCore      float64 // bytes of text a second, tokenized and written
	scanBytes         float64 // bytes of text a second that a core plans
	planBytes         float64 // a second that the machine that plans reads at most
	planOneCore       bool    // documents decide about later ones
	storeBytes        float64 // per second that the shared storage gives all nodes together
	uptimeHours       float64 // mean time until a node is preempted
	replaceMinutes    float64 // until another node replaces it
	slowShare         float64 // share of slow nodes
	slowFactor        float64 // how much slower
	stragglerFactor   float64 // a partition gets a second attempt after this many times the median; 0 means never
	resumes           bool    // a partition continues from its last checkpoint
	dollarsPerHour    float64 // a node
	shardBytes        float64
	idBytes           float64
	seed              uint64
}

func defaults() scenario {
	return scenario{textBytes: 60e12, tokens: 15e12, partitions: 20_000, nodes: 1000, cores: 16, bytesPerCore: 40e6,
		scanBytes: 1.5e9, planBytes: 3e9, storeBytes: 400e9, uptimeHours: 12, replaceMinutes: 6,
		slowShare: 0.02, slowFactor: 4,
		stragglerFactor: 2, resumes: true, dollarsPerHour: 0.20, shardBytes: 1 << 30, idBytes: 4, seed: 1}
}

func simulateCommand(args []string, out io.Writer) error {
	s := defaults()
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.Float64Var(&s.textBytes, "text", s.textBytes, "bytes of text")
	f.Float64Var(&s.tokens, "tokens", s.tokens, "tokens that it makes")
	f.IntVar(&s.partitions, "partitions", s.partitions, "partitions")
	f.IntVar(&s.nodes, "nodes", s.nodes, "nodes")
	f.IntVar(&s.cores, "cores", s.cores, "cores of a node")
	f.Float64Var(&s.bytesPerCore, "rate", s.bytesPerCore, "bytes of text that a core builds a second")
	f.Float64Var(&s.scanBytes, "scan", s.scanBytes, "bytes of text that a core plans a second")
	f.Float64Var(&s.planBytes, "plan-store", s.planBytes, "bytes a second that the machine that plans reads at most")
	f.BoolVar(&s.planOneCore, "plan-one-core", false, "the plan uses one core, as with --dedup and a split val")
	f.Float64Var(&s.storeBytes, "store", s.storeBytes, "bytes a second that the storage gives to all nodes")
	f.Float64Var(&s.uptimeHours, "uptime", s.uptimeHours, "mean hours until a node is preempted")
	f.Float64Var(&s.replaceMinutes, "replace", s.replaceMinutes, "minutes until another takes its place")
	f.Float64Var(&s.slowShare, "slow", s.slowShare, "share of nodes that are slow")
	f.Float64Var(&s.slowFactor, "slow-factor", s.slowFactor, "how much slower")
	f.Float64Var(&s.stragglerFactor, "stragglers", s.stragglerFactor,
		"start a partition again after this many medians, 0 never")
	f.BoolVar(&s.resumes, "resume", s.resumes, "partitions resume from checkpoints")
	f.Float64Var(&s.dollarsPerHour, "price", s.dollarsPerHour, "of a node-hour")
	f.Float64Var(&s.shardBytes, "shard-bytes", s.shardBytes, "bytes of a shard")
	f.Uint64Var(&s.seed, "seed", s.seed, "of the failures")
	if err := f.Parse(args); err != nil {
		return err
	}
	r := simulate(s)
	r.print(out, s)
	return nil
}

// result is what a simulated build took.
type result struct {
	planHours, buildHours, mergeHours float64
	nodeHours, lostHours              float64
	preempted, twins                  int
	shards                            float64
	store                             bool // the storage limits the nodes
}

// An event is the end of an attempt at a partition, by success or by the loss of the node.
type event struct {
	at        float64 // seconds
	node      int
	partition int
	lost      bool
	started   float64
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(v any)        { *e = append(*e, v.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// simulation is a running build.
type simulation struct {
	scenario
	rnd     *rand.Rand
	rate    float64   // bytes a second of a node
	left    []float64 // bytes of each partition that are not built
	done    []bool
	running []int // attempts at each partition
	waiting []int
	idle    []int // nodes
	slow    []bool
	dies    []float64 // when each node is preempted
	queue   events
	took    []float64 // seconds of the finished partitions
	now     float64
	result  result
}

// simulate runs the build from event to event.
func simulate(s scenario) result {
	m := &simulation{scenario: s, rnd: rand.New(rand.NewPCG(s.seed, 1))}
	m.rate = s.bytesPerCore * float64(s.cores)
	// Each byte of text is read once and its ids are written once, all through the storage.
	perByte := 1 + s.tokens*s.idBytes/s.textBytes
	if share := s.storeBytes / float64(s.nodes) / perByte; share < m.rate {
		m.rate, m.result.store = share, true
	}
	m.left, m.done, m.running = make([]float64, s.partitions), make([]bool, s.partitions), make([]int, s.partitions)
	for i := range m.left {
		m.left[i] = s.textBytes / float64(s.partitions)
		m.waiting = append(m.waiting, i)
	}
	m.slow, m.dies = make([]bool, s.nodes), make([]float64, s.nodes)
	for i := range m.slow {
		m.arrive(i)
		m.idle = append(m.idle, i)
	}
	finished := 0
	for finished < s.partitions {
		m.schedule()
		e := heap.Pop(&m.queue).(event)
		m.now = e.at
		m.running[e.partition]--
		if e.lost {
			m.lose(e)
			continue
		}
		m.idle = append(m.idle, e.node)
		if m.done[e.partition] {
			continue // another attempt was faster
		}
		m.done[e.partition] = true
		finished++
		m.took = append(m.took, e.at-e.started)
	}
	return m.total()
}

// arrive replaces a node with a new machine.
func (m *simulation) arrive(node int) {
	m.slow[node] = m.rnd.Float64() < m.slowShare
	m.dies[node] = m.now + m.rnd.ExpFloat64()*m.uptimeHours*3600
}

// lose removes a node in the middle of a partition.
func (m *simulation) lose(e event) {
	m.result.preempted++
	worked := m.now - e.started
	if m.resumes {
		m.left[e.partition] = max(0, m.left[e.partition]-worked*m.speed(e.node))
		m.result.lostHours += 1.0 / 3600 // a checkpoint is a second old at most
	} else {
		m.result.lostHours += worked / 3600
	}
	if !m.done[e.partition] && m.running[e.partition] == 0 {
		m.waiting = append(m.waiting, e.partition)
	}
	back := m.now + m.replaceMinutes*60
	at := m.now
	m.now = back
	m.arrive(e.node)
	m.now = at
	m.start(e.node, back)
}

func (m *simulation) speed(node int) float64 {
	if m.slow[node] {
		return m.rate / m.slowFactor
	}
	return m.rate
}

// schedule gives every idle node a partition, or, if none is left, a second attempt at one that
// takes long.
func (m *simulation) schedule() {
	for len(m.idle) > 0 {
		node := m.idle[len(m.idle)-1]
		if !m.start(node, m.now) {
			return
		}
		m.idle = m.idle[:len(m.idle)-1]
	}
}

// start gives a node work from a moment on, and reports whether there was any.
func (m *simulation) start(node int, at float64) bool {
	partition := -1
	if len(m.waiting) > 0 {
		partition, m.waiting = m.waiting[0], m.waiting[1:]
	} else if partition = m.straggler(); partition < 0 {
		if at > m.now {
			m.idle = append(m.idle, node) // it comes back to an empty queue
		}
		return false
	}
	m.running[partition]++
	left := m.left[partition]
	if m.running[partition] > 1 {
		left = m.textBytes / float64(m.partitions) // a second attempt starts from the beginning
		m.result.twins++
	}
	end := at + left/m.speed(node)
	e := event{at: end, node: node, partition: partition, started: at}
	if m.dies[node] < end {
		e.at, e.lost = max(at, m.dies[node]), true
	}
	heap.Push(&m.queue, e)
	return true
}

// straggler returns the partition with a single attempt that has run longest, if that is too long,
// else -1.
func (m *simulation) straggler() int {
	if m.stragglerFactor == 0 || len(m.took) < m.partitions/2 {
		return -1
	}
	median := slices.Clone(m.took[max(0, len(m.took)-1001):])
	slices.Sort(median)
	limit := m.stragglerFactor * median[len(median)/2]
	best, since := -1, math.Inf(1)
	for _, e := range m.queue {
		if !m.done[e.partition] && m.running[e.partition] == 1 && m.now-e.started > limit && e.started < since {
			best, since = e.partition, e.started
		}
	}
	return best
}

// total returns the result with the times of the plan and the merge.
func (m *simulation) total() result {
	r := m.result
	r.buildHours = m.now / 3600
	r.nodeHours = float64(m.nodes) * r.buildHours
	scan := m.scanBytes
	if !m.planOneCore {
		scan *= float64(m.cores)
	}
	r.planHours = m.textBytes / min(scan, m.planBytes) / 3600
	perPartition := m.tokens * m.idBytes / float64(m.partitions)
	r.shards = float64(m.partitions) * math.Ceil(perPartition/m.shardBytes)
	r.mergeHours = r.shards * mergeSecondsPerShard / 3600
	return r
}

// mergeSecondsPerShard is the time of `merge --quick` per shard on network storage: a few round
// trips of a millisecond, on 16 workers.
const mergeSecondsPerShard = 4e-3 / 16

// The lengths of a shard's line in the manifest, and of its entry in the list that takes their place
// where there are more than listedShards.
const (
	manifestBytesPerShard = 230
	listBytesPerShard     = 96
	listedShards          = 100_000
)

// metadataBytes returns the size of what describes the shards, without the shards themselves.
func (r result) metadataBytes() float64 {
	if r.shards > listedShards {
		return r.shards * listBytesPerShard
	}
	return r.shards * manifestBytesPerShard
}

func (r result) print(out io.Writer, s scenario) {
	fmt.Fprintf(out, "%.0f TB of text, %.0f T tokens, %d partitions of %.1f GB on %d nodes of %d cores\n",
		s.textBytes/1e12,
		s.tokens/1e12, s.partitions, s.textBytes/float64(s.partitions)/1e9, s.nodes, s.cores)
	limit := "cores"
	if r.store {
		limit = "storage"
	}
	ideal := s.textBytes / (s.bytesPerCore * float64(s.cores*s.nodes)) / 3600
	fmt.Fprintf(out, "plan   %6.2f h, one machine\n", r.planHours)
	fmt.Fprintf(out, "build  %6.2f h, limited by %s (%.2f h of pure work); "+
		"%d preemptions, %.1f node-hours lost, %d second attempts\n",
		r.buildHours, limit, ideal, r.preempted, r.lostHours, r.twins)
	fmt.Fprintf(out, "merge  %6.2f h, %.0f shards, manifest and list of %.0f MB\n", r.mergeHours, r.shards,
		r.metadataBytes()/1e6)
	fmt.Fprintf(out, "cost   %6.0f dollars for %.0f node-hours\n", cmp.Or(s.dollarsPerHour, 0)*r.nodeHours, r.nodeHours)
}
