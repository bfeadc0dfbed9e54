import type { ReactNode } from 'react';
import { useFormats, useWords } from '../words/words.tsx';
import { CloseIcon, FileIcon, ImageIcon, SpinnerIcon } from '../parts/icons.tsx';

export interface AttachmentChipProps {
  readonly name: string;
  readonly size: number;
  readonly isImage: boolean;
  /** Address of a preview within this page. */
  readonly preview?: string | null;
  readonly state?: 'uploading' | 'ready' | 'failed';
  readonly problem?: string | null;
  readonly onRemove?: () => void;
  readonly onOpen?: () => void;
}

export function AttachmentChip({ onRemove, onOpen, ...shown }: AttachmentChipProps): ReactNode {
  const words = useWords().chat.composer;
  const formats = useFormats();
  const { name, size, state = 'ready', problem = null } = shown;
  const failed = state === 'failed';
  return (
    <li className={`flex max-w-64 items-center gap-2 rounded-lg border bg-card py-1 pr-1 pl-2 text-xs ${failed ? 'border-danger' : ''}`}>
      <span className="shrink-0 text-muted-foreground">{state === 'uploading' ? <SpinnerIcon /> : <Preview {...shown} />}</span>
      <span className="min-w-0 pr-1">
        <span className="block truncate font-medium text-foreground">
          {onOpen === undefined ? (
            name
          ) : (
            <button type="button" className="max-w-full truncate underline-offset-2 hover:underline" onClick={onOpen}>
              {name}
            </button>
          )}
        </span>
        <span className={`block ${failed ? 'text-danger' : 'truncate text-muted-foreground'}`}>{problem ?? formats.bytes(size)}</span>
      </span>
      {onRemove !== undefined && (
        <button
          type="button"
          aria-label={words.remove(name)}
          className="rounded p-1 text-muted-foreground hover:bg-muted hover:text-foreground"
          onClick={onRemove}
        >
          <CloseIcon className="size-3.5" />
        </button>
      )}
    </li>
  );
}

function Preview({ preview = null, isImage }: Pick<AttachmentChipProps, 'preview' | 'isImage'>): ReactNode {
  if (preview !== null) return <img src={preview} alt="" className="size-8 rounded object-cover" />;
  return isImage ? <ImageIcon /> : <FileIcon />;
}
