import { defineConfig } from 'prisma/config';

// Nothing connects: the client is generated from the schema, and gets its connection from an adapter.
export default defineConfig({ schema: 'prisma/schema.prisma', datasource: { url: 'postgresql://unused' } });
