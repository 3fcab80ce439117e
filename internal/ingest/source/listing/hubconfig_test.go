package listing

import "testing"

func TestConfigsOf(t *testing.T) {
	const configs = "configs:\n- config_name: raw\n  data_files: raw/*\n\n# of two\n- config_name: b\n"
	for text, want := range map[string]string{
		"": "", "# no head\n": "", "---\nlicense: mit\n---\n": "",
		"---\nlicense: mit\n" + configs + "dataset_info:\n  configs: 3\n---\n# A card\n": configs,
		"---\r\nconfigs:\r\n- config_name: a\r\n---\r\n":                                 "configs:\r\n- config_name: a\r\n",
	} {
		if got := string(configsOf([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSplitOf(t *testing.T) {
	for name, want := range map[string]string{"train.jsonl": "train", "my_train_file.txt": "train",
		"training-00000-of-00001.parquet": "train", "train_sft-0.parquet": "train",
		"latest.jsonl": "", "strain.txt": "", "val.csv": "validation", "dev_2.csv": "validation",
		"evaluation.csv": "test", "testing.txt": "test", "medieval.txt": "", "x": ""} {
		if got := splitOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
