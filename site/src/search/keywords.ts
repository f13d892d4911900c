/**
 * What readers type, and the document that answers. The first document of the site's search must be this one: the build tries each
 * word, and says which documents do not exist yet. Words that a document does not have are added to its entry in the index.
 */
export const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  'docs/getting-started.md': ['install', 'npm', 'pnpm', 'yarn', 'bun', 'quick start'],
  'docs/troubleshooting.md': ['LOCK_TIMEOUT', 'LOCK_LOST', 'LOCK_BACKEND_FAILURE', 'LOCK_INVALID_ARGUMENT', 'error code'],
  'docs/guides/orms.md': ['prisma', 'drizzle', 'typeorm', 'knex', 'kysely'],
  'docs/guides/reentrancy.md': ['deadlock', 'reentrant'],
  'docs/guides/ttl-and-wait.md': ['watchdog', 'waitMs', 'ttlMs'],
  'docs/redlock-compat.md': ['redlock'],
  'docs/backends/redis.md': ['NX', 'valkey'],
  'docs/backends/postgres-advisory.md': ['advisory'],
  'docs/hosted-stores.md': ['ElastiCache', 'upstash', 'aurora', 'supabase', 'serverless'],
  'docs/backends/postgres.md': ['pgbouncer'],
  'docs/guides/production.md': ['production', 'checklist'],
  'docs/once-per-slot.md': ['cron'],
  'docs/leader-election.md': ['leader'],
  'docs/guides/fencing.md': ['fencing token'],
  'docs/nestjs.md': ['nestjs'],
};
