import { ProvidersFile } from '@concierge/contract';
import { resolveProviders } from '@concierge/model';
import { Embeddings } from '@concierge/model/openai';
import { startRealEmbeddings } from '@concierge/testing';

const model = 'test/universal-sentence-encoder';

/** The product's own client of an embeddings model that runs beside it, offline. */
export async function startRealEmbedder(parts: AsyncDisposableStack): Promise<Embeddings> {
  const { url } = parts.use(await startRealEmbeddings());
  const file = ProvidersFile.parse({ default: model, providers: { test: { baseUrl: url, apiKey: 'none' } }, embeddings: { model } });
  const { embeddings } = resolveProviders(file, () => undefined);
  if (embeddings === null) throw new Error('there are no embeddings');
  const opened = new Embeddings({ embeddings });
  parts.defer(() => {
    opened.close();
  });
  return opened;
}
