import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type CaseResult, defineHarness, delegate, runConformance } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { expect, it, vi } from 'vitest';

const KEPT_OPEN = fileURLToPath(new URL('./fixtures/kept-open.ts', import.meta.url));

it('reports a failure of idempotence at once, before the cases that fail because of it', async () => {
  const store = new MemoryStore();
  const harness = defineHarness({
    module: import.meta.url,
    createBackend() {
      const backend = memoryBackend(store);
      const granted = new Set<string>();
      return delegate(backend, {
        async attempt(request, enqueue, call) {
          if (granted.has(request.acquisitionId)) return { status: 'contended' };
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt.status === 'granted') granted.add(request.acquisitionId);
          return attempt;
        },
      });
    },
    timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
  });
  const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
  const results: CaseResult[] = [];
  const only = ['exclusion/at-once-one-wins', 'idempotence/repeated-attempt', 'names/bad-ones-are-refused'];
  await runConformance(harness, { only, onResult: (result) => results.push(result) });
  expect(results[0]).toMatchObject({ id: 'idempotence/repeated-attempt', outcome: 'failed' });
  expect(printed).toHaveBeenCalledOnce();
  expect(printed.mock.calls[0]?.[0]).toMatch(
    /^idempotence\/repeated-attempt failed.*attempt is not idempotent/,
  );
  printed.mockRestore();
});

it('names what keeps a process open whose run is over', { timeout: 60_000 }, async () => {
  const child = spawn(process.execPath, [KEPT_OPEN], { stdio: ['ignore', 'ignore', 'pipe'] });
  try {
    child.stderr.setEncoding('utf8');
    let said = '';
    child.stderr.on('data', (text: string) => (said += text));
    await vi.waitFor(() => expect(said).toContain('The run of the suite is over'), {
      timeout: 50_000,
      interval: 50,
    });
    expect(said).toMatch(/kept open by .*1 × TCPSocketWrap.*, to 127\.0\.0\.1:\d+\. /);
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});
