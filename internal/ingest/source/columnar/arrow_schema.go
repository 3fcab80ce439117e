package columnar

import (
	"strings"

	"github.com/dsload/dsload/internal/flatbuf"
)

// Arrow's types by their numbers in the format.
const (
	arrowNull          = 1
	arrowInt           = 2
	arrowFloat         = 3
	arrowBinary        = 4
	arrowUtf8          = 5
	arrowBool          = 6
	arrowDecimal       = 7
	arrowDate          = 8
	arrowTime          = 9
	arrowTimestamp     = 10
	arrowInterval      = 11
	arrowList          = 12
	arrowStruct        = 13
	arrowUnion         = 14
	arrowFixedBinary   = 15
	arrowFixedList     = 16
	arrowMap           = 17
	arrowDuration      = 18
	arrowLargeBinary   = 19
	arrowLargeUtf8     = 20
	arrowLargeList     = 21
	arrowRunEnd        = 22
	arrowBinaryView    = 23
	arrowUtf8View      = 24
	arrowListView      = 25
	arrowLargeListView = 26
)

// An arrowField is a column or a part of one.
type arrowField struct {
	name       string
	kind       byte
	width      int // bytes of a value of fixed width; elements of a fixed list
	unit       int
	signed     bool
	scale      int
	utc        bool // times are in UTC
	json       bool // its text is JSON
	uuid       bool // its bytes are a UUID's
	sparse     sparseness
	dictionary *dictionaryOf // nil where it is not encoded by one
	children   []*arrowField

	node, buffer int  // its first ones in a record batch, where columns of views have none of their own
	views        int  // columns of views before it
	buffers      int  // how many it has, without the text buffers of views
	wanted       bool // it lies in a wanted column
}

func (f *arrowFile) schema(t flatbuf.Table) error {
	if t.Short(0, 0) != 0 {
		return unsupported("its numbers are big-endian")
	}
	for column := range t.Tables(1) {
		field, err := f.field(column, 0, false)
		if err != nil {
			return err
		}
		if field.wanted && !f.over() {
			f.top = append(f.top, field)
		}
	}
	if f.count == 0 && t.Err == nil {
		return corrupt("its schema has no columns")
	}
	if f.options.Sparse {
		for _, a := range f.top {
			a.setSparse(false, false)
		}
	}
	f.isOpen = true
	return t.Err
}

const (
	// fieldBytes bounds what a wanted field takes besides its name, with its reader and its places in
	// lists.
	fieldBytes = 1536
	// minField is fewer than the bytes of a field in a schema.
	minField = 16
	// maxUnwantedDepth bounds the levels of a column that nobody wants.
	maxUnwantedDepth = 1000
)

// field reads a field, and counts its nodes and buffers. Of one that is not wanted nothing is kept.
func (f *arrowFile) field(t flatbuf.Table, depth int, wanted bool) (*arrowField, error) {
	if f.count++; f.count > t.Size/minField {
		return nil, corrupt("its schema has more columns than it has room for")
	}
	name, long := t.Text(nil, 0, maxNameBytes)
	a := &arrowField{kind: t.Byte(2, 0), node: f.nodes, buffer: f.buffers, views: f.views}
	a.wanted = wanted || depth == 0 && f.options.wants(name)
	switch {
	case t.Err != nil:
		return nil, t.Err
	case depth > maxUnwantedDepth || a.wanted && depth > maxDepth:
		return nil, unsupported("its columns are nested deeper than %d levels; leave such columns out of the wanted ones",
			maxDepth)
	case a.wanted && long:
		return nil, unsupported("the name of a column is longer than %d bytes", maxNameBytes)
	}
	typ, _ := t.Table(3)
	encoding, isEncoded := t.Table(4)
	a.setType(typ)
	if a.wanted {
		extension := extensionOf(t)
		a.json = a.isText() && extension == "arrow.json"
		a.uuid = a.kind == arrowFixedBinary && a.width == 16 && extension == "arrow.uuid"
	}
	if a.width < 0 || a.width > 1<<20 {
		return nil, corrupt("column %.100s has values of an impossible width", name)
	}
	if depth == 0 && !f.over() {
		f.columnList.add(columnInfo{string(name[:min(len(name), maxNameTold)]), a.isText() && !a.json,
			a.isList() || a.json}, a.wanted)
	}
	if a.wanted {
		f.take(fieldBytes + 4*int64(len(name)))
		a.name = strings.ToValidUTF8(string(name), "\uFFFD")
	}
	if isEncoded { // parts are those of the values in the dictionary
		if a.dictionaryField(encoding); a.wanted && !f.over() {
			f.encoded = append(f.encoded, a)
		}
		a.buffers = 2
		f.layout(a)
		return a, nil
	}
	if a.isView() {
		f.views++
	}
	f.layout(a)
	for part := range t.Tables(5) {
		child, err := f.field(part, depth+1, a.wanted)
		if err != nil {
			return nil, err
		}
		if a.wanted && !f.over() {
			a.children = append(a.children, child)
		}
	}
	return a, nil
}

// setType reads the parameters of a type, and notes how many buffers a column of it has.
func (a *arrowField) setType(typ flatbuf.Table) {
	a.buffers = 2 // validity and values
	switch a.kind {
	case arrowNull, arrowRunEnd:
		a.buffers = 0
	case arrowInt:
		a.width, a.signed = typ.Int(0, 0)/8, typ.Byte(1, 0) != 0
	case arrowFloat:
		a.width = 2 << (typ.Short(0, 0) & 3)
	case arrowDecimal:
		a.width, a.scale = typ.Int(2, 128)/8, typ.Int(1, 0)
	case arrowDate:
		a.unit = typ.Short(0, 1)
		a.width = 4 << (a.unit & 1)
	case arrowTime:
		a.unit, a.width = typ.Short(0, 1), typ.Int(1, 32)/8
	case arrowTimestamp, arrowDuration:
		a.unit, a.width = typ.Short(0, 0), 8
		_, zone := typ.Vector(1, 1)
		a.utc = a.kind == arrowTimestamp && zone > 0
		if a.kind == arrowDuration {
			a.unit = typ.Short(0, 1)
		}
	case arrowInterval:
		a.width = []int{4, 8, 16}[min(max(0, typ.Short(0, 0)), 2)]
	case arrowFixedBinary:
		a.width = typ.Int(0, 0)
	case arrowFixedList:
		a.width, a.buffers = typ.Int(0, 0), 1
	case arrowStruct:
		a.buffers = 1
	case arrowBinary, arrowUtf8, arrowLargeBinary, arrowLargeUtf8, arrowListView, arrowLargeListView:
		a.buffers = 3
	case arrowUnion:
		a.buffers = 1 + typ.Short(0, 0)&1
	}
}

// layout counts the node, buffers and streams of a field.
func (f *arrowFile) layout(a *arrowField) {
	f.nodes++
	f.buffers += a.buffers
	switch {
	case !a.wanted:
	case a.dictionary != nil || a.isView():
		f.streams += 8
	default:
		f.streams += 3
	}
}

// check refuses wanted columns of unsupported types.
func (a *arrowField) check(path string) error {
	children := -1
	if a.dictionary != nil {
		return a.checkDictionary(path)
	}
	switch a.kind {
	case arrowUnion, arrowRunEnd, arrowListView, arrowLargeListView, arrowInterval:
		return unreadType("column %s is of the type %s; %s", path, typeName(a.kind), decodeFirst)
	case arrowList, arrowLargeList, arrowFixedList, arrowMap:
		children = 1
	case arrowInt, arrowFloat, arrowDate, arrowTime, arrowTimestamp, arrowDuration:
		if a.width != 1 && a.width != 2 && a.width != 4 && a.width != 8 {
			return corrupt("column %s has numbers of an impossible width", path)
		}
	case 0:
		return corrupt("column %s has no type", path)
	}
	if a.kind > arrowLargeListView {
		return unsupported("column %s has an unknown type", path)
	}
	if children >= 0 && len(a.children) != children {
		return corrupt("column %s has %d parts in place of %d", path, len(a.children), children)
	}
	for _, c := range a.children {
		if err := c.check(path + "." + c.name); err != nil {
			return err
		}
	}
	return nil
}

// extensionOf returns the name of the extension type that a field says it is of, "" for none.
func extensionOf(field flatbuf.Table) string {
	for entry := range field.Tables(6) {
		if key, _ := entry.Text(nil, 0, maxKeyBytes); string(key) == "ARROW:extension:name" {
			name, _ := entry.Text(nil, 1, maxKeyBytes)
			return string(name)
		}
	}
	return ""
}

func (f *arrowFile) TextIsJSON() bool { return f.options.Text != "" && f.top[0].json }

func (a *arrowField) isText() bool {
	switch a.kind {
	case arrowUtf8, arrowLargeUtf8, arrowBinary, arrowLargeBinary, arrowUtf8View, arrowBinaryView:
		return true
	}
	return false
}

func (a *arrowField) isList() bool {
	return a.kind == arrowList || a.kind == arrowLargeList || a.kind == arrowFixedList
}

func (a *arrowField) isView() bool { return a.kind == arrowUtf8View || a.kind == arrowBinaryView }

// typeName returns what pyarrow calls an unsupported type.
func typeName(kind byte) string {
	switch kind {
	case arrowUnion:
		return "union"
	case arrowRunEnd:
		return "run_end_encoded"
	case arrowListView, arrowLargeListView:
		return "list_view"
	case arrowInterval:
		return "interval"
	case arrowStruct:
		return "structs"
	}
	return "lists"
}
