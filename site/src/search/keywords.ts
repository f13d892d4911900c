/**
 * Single words that readers type, and the document that answers. It must come first in the site's search: the build tries each word, and
 * says which documents do not exist yet. The words are added to the document's entry in the index, which may not have all of them.
 */
export const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  'docs/getting-started.md': ['install', 'npm', 'pnpm', 'yarn', 'bun', 'quickstart'],
  'docs/troubleshooting.md': ['LOCK_TIMEOUT', 'LOCK_LOST', 'LOCK_BACKEND', 'LOCK_CLOSED', 'timeout'],
  'docs/guides/serverless.md': ['lambda', 'freeze', 'vercel'],
  'docs/guides/per-tenant.md': ['bullmq', 'tenant', 'queue'],
  'docs/guides/hand-over.md': ['adopt', 'ticket'],
  'docs/guides/shared-results.md': ['cache', 'stampede', 'coalesce', 'singleflight', 'memoize'],
  'docs/guides/migrations.md': ['migrate', 'migration', 'umzug', 'deploy'],
  'docs/guides/orms.md': ['prisma', 'drizzle', 'typeorm', 'knex', 'kysely'],
  'docs/guides/reentrancy.md': ['deadlock', 'reentrant'],
  'docs/guides/ttl-and-wait.md': ['watchdog', 'waitMs', 'ttlMs', 'maxWaiters', 'newestWins', 'debounce'],
  'docs/guides/kinds-of-locks.md': ['semaphore', 'readers', 'mutex'],
  'docs/redlock-compat.md': ['redlock'],
  'docs/sizing.md': ['capacity', 'calculator', 'maxclients'],
  'docs/backends/redis.md': ['NX', 'valkey'],
  'docs/backends/postgres-advisory.md': ['advisory'],
  'docs/hosted-stores.md': ['ElastiCache', 'upstash', 'aurora', 'supabase', 'serverless'],
  'docs/backends/postgres.md': ['pgbouncer'],
  'docs/guides/production.md': ['production', 'checklist'],
  'docs/once-per-slot.md': ['cron'],
  'docs/leader-election.md': ['leader'],
  'docs/guides/fencing.md': ['fencing'],
  'docs/nestjs.md': ['nestjs'],
};
