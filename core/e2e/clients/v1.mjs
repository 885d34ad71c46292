// The TypeScript SDK v1 (up to 2025-11-25): lists without a key, calls with one.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, key] = process.argv.slice(2);
const connect = async (headers) => {
  const client = new Client({ name: "check-v1", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
};
const open = await connect({});
const tools = (await open.listTools()).tools;
let refused = "";
try {
  await open.callTool({ name: "platform_list_operators", arguments: {} });
} catch (err) {
  refused = String(err.message ?? err);
}
await open.close();
const keyed = await connect({ "X-Api-Key": key });
await keyed.listTools(); // so that the client validates structured content against the output schemas
const result = await keyed.callTool({ name: "platform_list_operators", arguments: {} });
await keyed.close();
console.log(JSON.stringify({ tools: tools.map((t) => t.name), refused, structured: result.structuredContent, isError: result.isError ?? false }));
