// The TypeScript SDK v2: every revision it speaks, by itself and pinned.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, key] = process.argv.slice(2);
const client = new Client({ name: "check-v2", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }));
const tools = (await client.listTools()).tools;
const result = await client.callTool({ name: "platform_list_operators", arguments: {} });
await client.close();
console.log(JSON.stringify({ tools: tools.map((t) => t.name), structured: result.structuredContent, isError: result.isError ?? false }));
