import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const forwarded = ['/api', '/v1', '/ops', '/openapi.json', '/docs'];
const gateway = 'http://127.0.0.1:8000';

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), tailwindcss()],
  // The packages of this repository are read as sources, whether they have been compiled or not.
  resolve: { conditions: ['@concierge/source', 'module', 'browser', 'development|production'] },
  // Not beside node_modules of the root: each user of a checkout may build.
  cacheDir: '../node_modules/.vite',
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2023',
    // Data addresses would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The renderer of Markdown, loaded when the chat page is there.
    chunkSizeWarningLimit: 600,
  },
  server: { port: 5173, proxy: Object.fromEntries(forwarded.map((path) => [path, gateway])) },
});
