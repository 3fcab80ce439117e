// Reads /v1/batches over a unix socket with apache-arrow and prints each batch as a line of JSON: node client.cjs SOCKET QUERY
const http = require("node:http");
const { RecordBatchReader } = require("apache-arrow");

const plain = (v) => (typeof v === "bigint" ? Number(v) : v && typeof v === "object" ? Array.from(v, plain) : v);

http.get({ socketPath: process.argv[2], path: "/v1/batches?" + process.argv[3] }, async (response) => {
  if (response.statusCode !== 200) {
    response.pipe(process.stderr);
    process.exitCode = 1;
    return;
  }
  const reader = await RecordBatchReader.from(response);
  for await (const batch of reader) {
    const out = {};
    for (const field of batch.schema.fields) out[field.name] = plain(batch.getChild(field.name));
    process.stdout.write(JSON.stringify(out) + "\n");
  }
});
