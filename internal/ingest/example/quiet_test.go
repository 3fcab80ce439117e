package example

import "testing"

func TestIsQuiet(t *testing.T) {
	for name, quiet := range map[string]bool{
		"id": true, "doc_id": true, "docId": true, "ID": true, "url": true, "image-url": true, "sha256": true, "created_at": true,
		"num_turns": true, "score_rejected": true, "__index_level_0__": true, "warc.record.id": true, "fasttext_score": true, "lang": true,
		"label": false, "rubric": false, "title": false, "system": false, "n": false, "idea": false, "": true, "字": false,
		"train": false, "weight": false, "rejected": false, "context": false, "idTitle": false,
		"format": true, "response_format": false, "outputSchema": false,
	} {
		if IsQuiet(name) != quiet {
			t.Errorf("%q: %v", name, !quiet)
		}
	}
}
