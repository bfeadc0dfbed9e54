import type { UploadRef } from '@concierge/contract';
import { useMutation } from '@tanstack/react-query';
import { createContext, useContext, useEffect, useState, type ReactNode } from 'react';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { Button } from '../parts/button.tsx';
import { Dialog } from '../parts/confirm-dialog.tsx';
import { saveAs } from '../parts/save-as.ts';
import { useExplain, useWords } from '../words/words.tsx';
import { AttachmentChip } from './attachment-chip.tsx';

/** From where sent files are read; null: this key may not. */
export const SentFilesGateway = createContext<GatewayClient | null>(null);

/** Files that went with a message: each opens, and can be saved. */
export function SentFiles({ files }: { readonly files: readonly UploadRef[] }): ReactNode {
  const words = useWords().chat;
  const gateway = useContext(SentFilesGateway);
  const [open, setOpen] = useState<UploadRef | null>(null);
  return (
    <>
      <ul aria-label={words.composer.attachments} className="flex flex-wrap justify-end gap-1.5">
        {files.map((file) => (
          <AttachmentChip
            key={file.id}
            name={file.name}
            size={file.size}
            isImage={file.type.startsWith('image/')}
            {...(gateway !== null && { onOpen: () => setOpen(file) })}
          />
        ))}
      </ul>
      {open !== null && gateway !== null && <FileDialog gateway={gateway} file={open} onClose={() => setOpen(null)} />}
    </>
  );
}

interface FileDialogProps {
  readonly gateway: GatewayClient;
  readonly file: UploadRef;
  readonly onClose: () => void;
}

function FileDialog({ gateway, file, onClose }: FileDialogProps): ReactNode {
  const { chat, parts } = useWords();
  const explain = useExplain();
  const reading = useMutation({ mutationFn: async () => gateway.readUpload(file.id) });
  const { mutate, data: blob } = reading;
  useEffect(() => mutate(), [mutate]);
  const buttons = (
    <>
      <Button onClick={onClose}>{chat.close}</Button>
      <Button
        tone="primary"
        disabled={blob === undefined}
        onClick={() => {
          if (blob !== undefined) saveAs(blob, file.name);
        }}
      >
        {chat.turn.download}
      </Button>
    </>
  );
  return (
    <Dialog title={file.name} buttons={buttons} error={reading.isError ? explain(reading.error) : null} onClose={onClose}>
      {blob === undefined && !reading.isError && <p role="status">{parts.loading}</p>}
      {blob !== undefined && <Contents blob={blob} file={file} />}
    </Dialog>
  );
}

/** Characters of a text that are shown. */
const TEXT_SHOWN = 20_000;

/** A picture or a text as it is; anything else can be saved. */
function Contents({ blob, file }: { readonly blob: Blob; readonly file: UploadRef }): ReactNode {
  const [shown, setShown] = useState<{ readonly picture?: string; readonly text?: string }>({});
  useEffect(() => {
    if (file.type.startsWith('text/')) {
      void blob.text().then((text) => setShown({ text: text.slice(0, TEXT_SHOWN) }));
      return undefined;
    }
    if (!file.type.startsWith('image/')) return undefined;
    const picture = URL.createObjectURL(blob);
    setShown({ picture });
    return () => {
      URL.revokeObjectURL(picture);
    };
  }, [blob, file]);
  if (shown.picture !== undefined) return <img src={shown.picture} alt={file.name} className="max-h-[60vh] max-w-full rounded-lg" />;
  if (shown.text === undefined) return null;
  return (
    <pre tabIndex={0} className="max-h-[60vh] overflow-auto rounded-lg bg-muted p-2 text-xs whitespace-pre-wrap [overflow-wrap:anywhere]">
      {shown.text}
    </pre>
  );
}
