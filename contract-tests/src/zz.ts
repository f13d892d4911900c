import { deploy } from './redis/deployment.ts';
import { Redis } from 'ioredis';
import { spawn } from 'node:child_process';
const t0 = performance.now();
const d = await deploy('sentinel');
console.log('deployed', performance.now() - t0);
const subs = [];
for (const s of (d.direct as any).sentinels) {
  const c = new Redis(s.port, s.host);
  subs.push(c);
  await c.psubscribe('*');
  c.on('pmessage', (_p: string, ch: string, m: string) => console.log((performance.now() - t0).toFixed(0), s.port, ch, m));
}
const n = Number(process.argv[2]);
const burners = Array.from({ length: n }, () => spawn(process.execPath, ['-e', 'const e=Date.now()+20000;while(Date.now()<e);']));
await Promise.all(burners.map((b) => new Promise((r) => b.on('exit', r))));
for (const c of subs) c.disconnect();
await d.stop();
